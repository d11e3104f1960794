package oracle;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** One event: its place in the order of processing, id, type, time in milliseconds and attributes. */
record Event(int place, JsonNode id, String type, long time, Map<String, Object> attributes) {
    private static final long MICROSECONDS = 1000;

    static Event read(int place, JsonNode node) {
        Map<String, Object> attributes = new LinkedHashMap<>();
        node.path("attributes").forEachEntry((name, value) -> attributes.put(name, Values.read(value)));
        return new Event(place, node.get("id"), node.path("type").asText(null), node.get("time").asLong(), attributes);
    }

    /** Gives an attribute, or what every event has; an attribute of that name comes first. */
    Object value(String name) {
        if (attributes.containsKey(name)) {
            return attributes.get(name);
        }
        return switch (name) {
            case "id" -> Values.read(id);
            case "type" -> type;
            case "start", "end", "timestamp" -> time * MICROSECONDS;
            case "duration" -> 0L;
            default -> null;
        };
    }

    /** Gives what parts the stream: events of equal keys belong together. */
    List<Object> key(List<String> names) {
        return names.stream().map(this::value).toList();
    }
}
