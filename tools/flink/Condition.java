package oracle;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** A condition given as a tree, with the nulls of SQL: it holds only if it is true. */
final class Condition extends IterativeCondition<Event> {
    private static final long serialVersionUID = 1;

    /** How patterns get them. */
    static final Conditions<Event> ALL = new Conditions<>() {
        @Override
        public Condition ofType(String type) {
            return new Condition((event, taken) -> type.equals(event.type()));
        }

        @Override
        public Condition of(JsonNode tree) {
            return new Condition(term(tree));
        }
    };

    // Transient, because Flink wants to see that a condition can be serialized; ours is never shipped.
    private final transient Term term;

    private Condition(Term term) {
        this.term = term;
    }

    /** Something that has a value for an event and the events taken so far. */
    private interface Term {
        Object value(Event event, Context<Event> taken) throws Exception;
    }

    @Override
    public boolean filter(Event event, Context<Event> taken) throws Exception {
        return truth(term.value(event, taken)) == Boolean.TRUE;
    }

    private static Term term(JsonNode tree) {
        if (tree.has("op")) {
            return operation(tree.get("op").asText(), arguments(tree));
        }
        if (tree.has("call")) {
            String function = tree.get("call").asText();
            List<Term> arguments = arguments(tree);
            return (event, taken) ->
                    Values.test(
                            function,
                            arguments.get(0).value(event, taken),
                            arguments.get(1).value(event, taken));
        }
        if (tree.has("agg")) {
            return aggregate(tree);
        }
        if (tree.has("attr")) {
            String name = tree.get("attr").asText();
            return (event, taken) -> event.value(name);
        }
        if (tree.has("value")) {
            Object value = Values.read(tree.get("value"));
            return (event, taken) -> value;
        }
        throw new IllegalArgumentException("not a condition: " + tree);
    }

    private static List<Term> arguments(JsonNode tree) {
        List<Term> terms = new ArrayList<>();
        tree.path("args").forEach(argument -> terms.add(term(argument)));
        return terms;
    }

    private static Term operation(String operator, List<Term> arguments) {
        if (operator.equals("and") || operator.equals("or")) {
            return logic(arguments, operator.equals("or"));
        }
        Term first = arguments.get(0);
        if (operator.equals("not")) {
            return (event, taken) -> not(truth(first.value(event, taken)));
        }
        if (operator.equals("is_null")) {
            return (event, taken) -> first.value(event, taken) == null;
        }
        if (operator.equals("-") && arguments.size() == 1) {
            return (event, taken) -> Values.calculate("*", -1L, first.value(event, taken));
        }
        Term second = arguments.get(1);
        if (Values.isComparison(operator)) {
            return (event, taken) ->
                    Values.compare(operator, first.value(event, taken), second.value(event, taken));
        }
        return (event, taken) ->
                Values.calculate(operator, first.value(event, taken), second.value(event, taken));
    }

    /** Joins with `and` or `or`: one argument that equals `decisive` decides, else one that is unknown. */
    private static Term logic(List<Term> arguments, boolean decisive) {
        return (event, taken) -> {
            Boolean result = !decisive;
            for (Term argument : arguments) {
                Boolean value = truth(argument.value(event, taken));
                if (value == null) {
                    result = null;
                } else if (value == decisive) {
                    return decisive;
                }
            }
            return result;
        };
    }

    private static Term aggregate(JsonNode tree) {
        String function = tree.get("agg").asText();
        String step = tree.get("step").asText();
        String name = tree.path("attr").asText(null);
        return (event, taken) -> {
            List<Object> values = new ArrayList<>();
            for (Event each : taken.getEventsForPattern(step)) {
                Object value = name == null ? each : each.value(name);
                if (value != null) {
                    values.add(value);
                }
            }
            return Values.aggregate(function, values);
        };
    }

    private static Boolean not(Boolean value) {
        return value == null ? null : (Boolean) !value;
    }

    private static Boolean truth(Object value) {
        if (value == null || value instanceof Boolean) {
            return (Boolean) value;
        }
        throw new IllegalArgumentException("a condition is true, false or null, not " + value);
    }
}
