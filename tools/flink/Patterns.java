package oracle;

import java.time.Duration;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToFirstStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToLastStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/**
 * Says a pattern in JSON with the words of Flink's Pattern API, and leaves it to Flink to refuse it.
 *
 * @param <E> what the events are; only the conditions look into them
 */
public final class Patterns<E> {
    private final Conditions<E> conditions;

    private Patterns(Conditions<E> conditions) {
        this.conditions = conditions;
    }

    public static <E> Pattern<E, E> build(JsonNode node, Conditions<E> conditions) {
        return new Patterns<>(conditions).whole(node);
    }

    private Pattern<E, E> whole(JsonNode node) {
        Pattern<E, E> pattern = sequence(node.path("steps"), skip(node.path("after_match_skip")));
        JsonNode within = node.path("within");
        if (within.hasNonNull("ms")) {
            pattern.within(duration(within.get("ms")), withinType(within.path("type").asText("first_to_last")));
        }
        return pattern;
    }

    private Pattern<E, E> sequence(JsonNode steps, AfterMatchSkipStrategy skip) {
        if (steps.isEmpty()) {
            throw new IllegalArgumentException("a pattern or a group needs a step");
        }
        Pattern<E, E> last = null;
        for (JsonNode step : steps) {
            last = last == null ? begin(step, skip) : after(last, step);
            describe(last, step);
        }
        return last;
    }

    private Pattern<E, E> begin(JsonNode step, AfterMatchSkipStrategy skip) {
        if (step.path("contiguity").asText("").startsWith("not")) {
            throw new IllegalArgumentException("Flink has no pattern that begins with " + step.get("contiguity"));
        }
        return step.has("group")
                ? Pattern.begin(group(step), skip)
                : Pattern.begin(step.get("name").asText(), skip);
    }

    private Pattern<E, E> after(Pattern<E, E> last, JsonNode step) {
        String contiguity = step.path("contiguity").asText();
        if (step.has("group")) {
            return switch (contiguity) {
                case "next" -> last.next(group(step));
                case "followedBy" -> last.followedBy(group(step));
                case "followedByAny" -> last.followedByAny(group(step));
                default -> throw new IllegalArgumentException("Flink has no " + contiguity + " with a group");
            };
        }
        String name = step.get("name").asText();
        return switch (contiguity) {
            case "next" -> last.next(name);
            case "followedBy" -> last.followedBy(name);
            case "followedByAny" -> last.followedByAny(name);
            case "notNext" -> last.notNext(name);
            case "notFollowedBy" -> last.notFollowedBy(name);
            default -> throw new IllegalArgumentException("there is no contiguity " + contiguity);
        };
    }

    private Pattern<E, E> group(JsonNode step) {
        return sequence(step.get("group"), AfterMatchSkipStrategy.noSkip());
    }

    private void describe(Pattern<E, E> pattern, JsonNode step) {
        if (step.hasNonNull("type")) {
            pattern.where(conditions.ofType(step.get("type").asText()));
        }
        if (step.hasNonNull("condition")) {
            pattern.where(conditions.of(step.get("condition")));
        }
        quantify(pattern, step.path("quantifier"));
        if (step.hasNonNull("within_previous_ms")) {
            pattern.within(duration(step.get("within_previous_ms")), WithinType.PREVIOUS_AND_CURRENT);
        }
    }

    private void quantify(Pattern<E, E> pattern, JsonNode quantifier) {
        repeat(pattern, quantifier);
        if (quantifier.path("consecutive").asBoolean()) {
            pattern.consecutive();
        }
        if (quantifier.path("combinations").asBoolean()) {
            pattern.allowCombinations();
        }
        if (quantifier.path("optional").asBoolean()) {
            pattern.optional();
        }
        if (quantifier.path("greedy").asBoolean()) {
            pattern.greedy();
        }
        if (quantifier.hasNonNull("until")) {
            pattern.until(conditions.of(quantifier.get("until")));
        }
    }

    /** Says how often; `window_ms` is the time that Flink's own times(n, time) takes. */
    private static <E> void repeat(Pattern<E, E> pattern, JsonNode quantifier) {
        int min = quantifier.path("min").asInt(1);
        boolean open = quantifier.has("max") && quantifier.get("max").isNull();
        int max = quantifier.path("max").asInt(1);
        Duration window = quantifier.hasNonNull("window_ms") ? duration(quantifier.get("window_ms")) : null;
        if (open && min == 1) {
            pattern.oneOrMore(window);
        } else if (open) {
            pattern.timesOrMore(min, window);
        } else if (min != max) {
            pattern.times(min, max, window);
        } else if (min != 1 || window != null) {
            pattern.times(min, window);
        }
    }

    private static AfterMatchSkipStrategy skip(JsonNode node) {
        String strategy = node.path("strategy").asText("no_skip");
        return switch (strategy) {
            case "no_skip" -> AfterMatchSkipStrategy.noSkip();
            case "skip_to_next" -> AfterMatchSkipStrategy.skipToNext();
            case "skip_past_last_event" -> AfterMatchSkipStrategy.skipPastLastEvent();
            case "skip_to_first" -> skipToFirst(node);
            case "skip_to_last" -> skipToLast(node);
            default -> throw new IllegalArgumentException("there is no strategy " + strategy);
        };
    }

    private static AfterMatchSkipStrategy skipToFirst(JsonNode node) {
        SkipToFirstStrategy skip = AfterMatchSkipStrategy.skipToFirst(node.path("step").asText());
        return node.path("throw_on_miss").asBoolean() ? skip.throwExceptionOnMiss() : skip;
    }

    private static AfterMatchSkipStrategy skipToLast(JsonNode node) {
        SkipToLastStrategy skip = AfterMatchSkipStrategy.skipToLast(node.path("step").asText());
        return node.path("throw_on_miss").asBoolean() ? skip.throwExceptionOnMiss() : skip;
    }

    private static WithinType withinType(String type) {
        return switch (type) {
            case "first_to_last" -> WithinType.FIRST_AND_LAST;
            case "previous_to_current" -> WithinType.PREVIOUS_AND_CURRENT;
            default -> throw new IllegalArgumentException("there is no type of within " + type);
        };
    }

    private static Duration duration(JsonNode milliseconds) {
        return Duration.ofMillis(milliseconds.asLong());
    }
}
