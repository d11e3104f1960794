package oracle;

import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * What Whimbrel's operators do to values: Long, Double, Boolean, String, and null for what is not known.
 *
 * <p>Whole numbers wrap at 64 bits, a quotient is a Double, and what is not a number is null.
 */
final class Values {
    private static final Map<String, Predicate<Integer>> COMPARISONS =
            Map.of(
                    "=", order -> order == 0,
                    "!=", order -> order != 0,
                    "<", order -> order < 0,
                    "<=", order -> order <= 0,
                    ">", order -> order > 0,
                    ">=", order -> order >= 0);

    private Values() {}

    static Object read(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        if (node.isBoolean()) {
            return node.booleanValue();
        }
        if (node.isTextual()) {
            return node.textValue();
        }
        if (node.isIntegralNumber() && node.canConvertToLong()) {
            return node.longValue();
        }
        if (node.isNumber()) {
            return known(node.doubleValue());
        }
        throw new IllegalArgumentException("a value is a number, a text, true, false or null, not " + node);
    }

    static boolean isComparison(String operator) {
        return COMPARISONS.containsKey(operator);
    }

    static Boolean compare(String operator, Object left, Object right) {
        if (left == null || right == null) {
            return null;
        }
        return COMPARISONS.get(operator).test(order(left, right));
    }

    static int order(Object left, Object right) {
        if (left instanceof Long one && right instanceof Long two) {
            return one.compareTo(two);
        }
        if (left instanceof Number one && right instanceof Number two) {
            double a = one.doubleValue();
            double b = two.doubleValue();
            return a < b ? -1 : a > b ? 1 : 0; // -0.0 and 0.0 are equal, unlike in Double.compare
        }
        if (left instanceof String one && right instanceof String two) {
            return byCodePoint(one, two);
        }
        if (left instanceof Boolean one && right instanceof Boolean two) {
            return one.compareTo(two);
        }
        throw new IllegalArgumentException("cannot compare " + left + " with " + right);
    }

    static Object calculate(String operator, Object left, Object right) {
        if (left == null || right == null) {
            return null;
        }
        if (!(left instanceof Number one && right instanceof Number two)) {
            throw new IllegalArgumentException("cannot calculate " + left + " " + operator + " " + right);
        }
        if (left instanceof Long a && right instanceof Long b && !operator.equals("/")) {
            return whole(operator, a, b);
        }
        return known(fractional(operator, one.doubleValue(), two.doubleValue()));
    }

    private static Long whole(String operator, long left, long right) {
        return switch (operator) {
            case "+" -> left + right;
            case "-" -> left - right;
            case "*" -> left * right;
            case "%" -> right == 0 ? null : (Long) Math.floorMod(left, right);
            default -> throw new IllegalArgumentException("there is no operator " + operator);
        };
    }

    private static double fractional(String operator, double left, double right) {
        return switch (operator) {
            case "+" -> left + right;
            case "-" -> left - right;
            case "*" -> left * right;
            case "/" -> right == 0 ? Double.NaN : left / right;
            case "%" -> floorMod(left, right);
            default -> throw new IllegalArgumentException("there is no operator " + operator);
        };
    }

    private static double floorMod(double left, double right) {
        double rest = left % right;
        return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
    }

    static Double known(double value) {
        return Double.isNaN(value) ? null : (Double) value;
    }

    static Boolean test(String function, Object text, Object part) {
        if (text == null || part == null) {
            return null;
        }
        BiFunction<String, String, Boolean> found =
                switch (function) {
                    case "contains" -> String::contains;
                    case "startswith" -> String::startsWith;
                    default -> throw new IllegalArgumentException("there is no function " + function);
                };
        if (text instanceof String whole && part instanceof String sought) {
            return found.apply(whole, sought);
        }
        throw new IllegalArgumentException(function + " takes texts, not " + text + " and " + part);
    }

    /** Aggregates values of which none is null, as a loop over getEventsForPattern would: nothing adds up to 0. */
    static Object aggregate(String function, List<Object> values) {
        if (function.equals("count")) {
            return (long) values.size();
        }
        if (function.equals("sum")) {
            return sum(values);
        }
        if (values.isEmpty()) {
            return null;
        }
        return switch (function) {
            case "first" -> values.get(0);
            case "last" -> values.get(values.size() - 1);
            case "min" -> values.stream().min(Values::order).get();
            case "max" -> values.stream().max(Values::order).get();
            case "avg" -> calculate("/", sum(values), (long) values.size());
            default -> throw new IllegalArgumentException("there is no aggregate " + function);
        };
    }

    private static Object sum(List<Object> values) {
        Object total = 0L;
        for (Object value : values) {
            total = calculate("+", total, value);
        }
        return total;
    }

    private static int byCodePoint(String left, String right) {
        int[] one = left.codePoints().toArray();
        int[] two = right.codePoints().toArray();
        return java.util.Arrays.compare(one, two);
    }
}
