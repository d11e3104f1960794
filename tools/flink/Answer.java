package oracle;

import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/** What Flink made of one request, in the order in which it came. */
final class Answer {
    private final ObjectNode node = JsonNodeFactory.instance.objectNode();
    private final ArrayNode matches = node.putArray("matches");
    private final ArrayNode timeouts = node.putArray("timeouts");

    Answer() {
        node.putNull("error");
    }

    static Answer refusal(Throwable error) {
        Answer answer = new Answer();
        String words = error.getClass().getSimpleName() + ": " + error.getMessage();
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
            words += "; because of " + cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
        answer.node.put("error", words);
        return answer;
    }

    void addMatch(Map<String, List<Event>> match) {
        ObjectNode found = matches.addObject();
        ArrayNode events = found.putArray("events");
        match.values().stream()
                .flatMap(List::stream)
                .sorted(Comparator.comparing(Event::place))
                .forEach(event -> events.add(event.id()));
        found.set("steps", steps(match));
    }

    void addTimeout(Map<String, List<Event>> partial, long time) {
        timeouts.addObject().put("time", time).set("steps", steps(partial));
    }

    private static ObjectNode steps(Map<String, List<Event>> match) {
        ObjectNode steps = JsonNodeFactory.instance.objectNode();
        match.forEach((step, events) -> steps.set(step, ids(events)));
        return steps;
    }

    private static ArrayNode ids(List<Event> events) {
        ArrayNode ids = JsonNodeFactory.instance.arrayNode();
        events.forEach(event -> ids.add(event.id()));
        return ids;
    }

    @Override
    public String toString() {
        return node.toString();
    }
}
