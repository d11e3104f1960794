package peer;

import java.io.IOException;
import org.apache.flink.api.common.serialization.SerializerConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** One event: its row in the input, type, object, time in milliseconds and value; 25 bytes on the wire. */
public final class Event {
    public int row;
    public byte type;
    public int object;
    public long time;
    public double value;

    public Event copy() {
        return set(new Event(), row, type, object, time, value);
    }

    static Event set(Event event, int row, byte type, int object, long time, double value) {
        event.row = row;
        event.type = type;
        event.object = object;
        event.time = time;
        event.value = value;
        return event;
    }

    /** Tells Flink to write events with the serializer below, which is faster than what it would find by itself. */
    public static final class Info extends TypeInformation<Event> {
        private static final long serialVersionUID = 1;

        @Override
        public boolean isBasicType() {
            return false;
        }

        @Override
        public boolean isTupleType() {
            return false;
        }

        @Override
        public int getArity() {
            return 1;
        }

        @Override
        public int getTotalFields() {
            return 1;
        }

        @Override
        public Class<Event> getTypeClass() {
            return Event.class;
        }

        @Override
        public boolean isKeyType() {
            return false;
        }

        @Override
        public TypeSerializer<Event> createSerializer(SerializerConfig config) {
            return Serializer.INSTANCE;
        }

        @Override
        public String toString() {
            return "Event";
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Info;
        }

        @Override
        public int hashCode() {
            return Info.class.hashCode();
        }

        @Override
        public boolean canEqual(Object other) {
            return other instanceof Info;
        }
    }

    /** Writes the five fields, one after the other. */
    public static final class Serializer extends TypeSerializerSingleton<Event> {
        private static final long serialVersionUID = 1;
        static final Serializer INSTANCE = new Serializer();
        private static final int LENGTH = 25;

        @Override
        public boolean isImmutableType() {
            return false;
        }

        @Override
        public Event createInstance() {
            return new Event();
        }

        @Override
        public Event copy(Event from) {
            return from.copy();
        }

        @Override
        public Event copy(Event from, Event reuse) {
            return set(reuse, from.row, from.type, from.object, from.time, from.value);
        }

        @Override
        public int getLength() {
            return LENGTH;
        }

        @Override
        public void serialize(Event event, DataOutputView target) throws IOException {
            target.writeInt(event.row);
            target.writeByte(event.type);
            target.writeInt(event.object);
            target.writeLong(event.time);
            target.writeDouble(event.value);
        }

        @Override
        public Event deserialize(DataInputView source) throws IOException {
            return deserialize(new Event(), source);
        }

        @Override
        public Event deserialize(Event reuse, DataInputView source) throws IOException {
            return set(
                    reuse, source.readInt(), source.readByte(), source.readInt(), source.readLong(), source.readDouble());
        }

        @Override
        public void copy(DataInputView source, DataOutputView target) throws IOException {
            target.write(source, LENGTH);
        }

        @Override
        public TypeSerializerSnapshot<Event> snapshotConfiguration() {
            return new Snapshot();
        }

        /** Says that the format has one version only. */
        public static final class Snapshot extends SimpleTypeSerializerSnapshot<Event> {
            public Snapshot() {
                super(() -> INSTANCE);
            }
        }
    }
}
