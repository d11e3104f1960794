package oracle;

import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * Makes the conditions of a pattern.
 *
 * @param <E> what the events are
 */
public interface Conditions<E> {
    /** Holds for events of a type. */
    IterativeCondition<E> ofType(String type);

    /** Holds where the tree of an expression is true. */
    IterativeCondition<E> of(JsonNode tree);
}
