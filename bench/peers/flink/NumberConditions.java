package peer;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.Iterator;
import java.util.List;
import oracle.Conditions;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.IterativeCondition.Context;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * Conditions on the type and the value of an event, put together once, before the job: while it runs, no value is boxed
 * and no name is looked up but that of a step, which Flink's own interface asks for.
 */
final class NumberConditions implements Conditions<Event> {
    private final List<String> types;

    /** Takes the names of the types, in the order of their numbers. */
    NumberConditions(List<String> types) {
        this.types = types;
    }

    private interface Number extends Serializable {
        double of(Event event, Context<Event> taken) throws Exception;
    }

    private interface Test extends Serializable {
        boolean of(Event event, Context<Event> taken) throws Exception;
    }

    @Override
    public IterativeCondition<Event> ofType(String type) {
        int number = types.indexOf(type);
        if (number < 0) {
            throw new IllegalArgumentException("the events have no type " + type + ", only " + types);
        }
        return SimpleCondition.of(event -> event.type == number);
    }

    @Override
    public IterativeCondition<Event> of(JsonNode tree) {
        return new Condition(test(tree));
    }

    private static final class Condition extends IterativeCondition<Event> {
        private static final long serialVersionUID = 1;

        private final Test test;

        Condition(Test test) {
            this.test = test;
        }

        @Override
        public boolean filter(Event event, Context<Event> taken) throws Exception {
            return test.of(event, taken);
        }
    }

    private static Test test(JsonNode tree) {
        String operator = tree.path("op").asText();
        JsonNode arguments = tree.path("args");
        if (operator.equals("and") || operator.equals("or")) {
            return joined(arguments, operator.equals("or"));
        }
        if (arguments.size() != 2) {
            throw new IllegalArgumentException("not a comparison of numbers: " + tree);
        }
        Number left = number(arguments.get(0));
        Number right = number(arguments.get(1));
        return switch (operator) {
            case "=" -> (event, taken) -> left.of(event, taken) == right.of(event, taken);
            case "!=" -> (event, taken) -> left.of(event, taken) != right.of(event, taken);
            case "<" -> (event, taken) -> left.of(event, taken) < right.of(event, taken);
            case "<=" -> (event, taken) -> left.of(event, taken) <= right.of(event, taken);
            case ">" -> (event, taken) -> left.of(event, taken) > right.of(event, taken);
            case ">=" -> (event, taken) -> left.of(event, taken) >= right.of(event, taken);
            default -> throw new IllegalArgumentException("not a comparison of numbers: " + tree);
        };
    }

    /** Joins with `and` or `or`: the first that equals `decisive` decides. */
    private static Test joined(JsonNode arguments, boolean decisive) {
        ArrayList<Test> tests = new ArrayList<>();
        arguments.forEach(argument -> tests.add(test(argument)));
        return (event, taken) -> {
            for (Test each : tests) {
                if (each.of(event, taken) == decisive) {
                    return decisive;
                }
            }
            return !decisive;
        };
    }

    private static Number number(JsonNode tree) {
        if (tree.path("value").isNumber()) {
            double value = tree.get("value").doubleValue();
            return (event, taken) -> value;
        }
        if (tree.has("agg")) {
            return aggregate(tree);
        }
        if (tree.path("attr").asText().equals("value")) {
            return (event, taken) -> event.value;
        }
        if (tree.path("args").size() == 2) {
            return calculation(tree);
        }
        throw new IllegalArgumentException("not a number: " + tree);
    }

    private static Number calculation(JsonNode tree) {
        Number left = number(tree.get("args").get(0));
        Number right = number(tree.get("args").get(1));
        return switch (tree.path("op").asText()) {
            case "+" -> (event, taken) -> left.of(event, taken) + right.of(event, taken);
            case "-" -> (event, taken) -> left.of(event, taken) - right.of(event, taken);
            case "*" -> (event, taken) -> left.of(event, taken) * right.of(event, taken);
            case "/" -> (event, taken) -> left.of(event, taken) / right.of(event, taken);
            default -> throw new IllegalArgumentException("not a number: " + tree);
        };
    }

    /** Over the values that a step has taken; NaN, of which no comparison is true, where it has taken none. */
    private static Number aggregate(JsonNode tree) {
        String step = tree.get("step").asText();
        return switch (tree.get("agg").asText()) {
            case "first" -> (event, taken) -> {
                Iterator<Event> events = taken.getEventsForPattern(step).iterator();
                return events.hasNext() ? events.next().value : Double.NaN;
            };
            case "last" -> (event, taken) -> {
                double last = Double.NaN;
                for (Event each : taken.getEventsForPattern(step)) {
                    last = each.value;
                }
                return last;
            };
            case "avg" -> (event, taken) -> {
                DoubleSummaryStatistics values = new DoubleSummaryStatistics();
                for (Event each : taken.getEventsForPattern(step)) {
                    values.accept(each.value);
                }
                return values.getCount() == 0 ? Double.NaN : values.getAverage();
            };
            default -> throw new IllegalArgumentException("not an aggregate that is measured: " + tree);
        };
    }
}
