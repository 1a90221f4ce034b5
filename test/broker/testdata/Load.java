import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Clients that the tests need: many producers in one process, since each process is a second of start-up. */
public class Load {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    public static void main(String[] a) throws Exception {
        switch (a[0]) {
            case "topic":
                topic(a[1], a[2], Integer.parseInt(a[3]), Short.parseShort(a[4]), Arrays.copyOfRange(a, 5, a.length));
                break;
            case "assign":
                assign(a[1], a[2], Arrays.copyOfRange(a, 3, a.length));
                break;
            case "replicate":
                replicate(a[1], a[2], Arrays.copyOfRange(a, 3, a.length));
                break;
            case "fill":
                fill(a[1], Integer.parseInt(a[2]));
                break;
            case "load":
                load(a[1], Integer.parseInt(a[2]), Arrays.copyOfRange(a, 3, a.length));
                break;
            case "churn":
                churn(a[1], Integer.parseInt(a[2]), a[3]);
                break;
            default:
                throw new IllegalArgumentException(a[0]);
        }
    }

    static Admin admin(String addr) {
        Properties p = new Properties();
        p.put("bootstrap.servers", addr);
        return Admin.create(p);
    }

    /** topic ADDR NAME PARTITIONS REPLICAS [SETTING=VALUE...] */
    static void topic(String addr, String name, int partitions, short replicas, String... settings) throws Exception {
        try (Admin admin = admin(addr)) {
            create(admin, name, partitions, replicas, settings);
        }
    }

    /** assign ADDR NAME NODE... makes a topic with one partition on these nodes, led by the first. */
    static void assign(String addr, String name, String... nodes) throws Exception {
        try (Admin admin = admin(addr)) {
            admin.createTopics(List.of(new NewTopic(name, Map.of(0, ids(nodes))))).all().get();
            led(admin, name, 1);
        }
    }

    static List<Integer> ids(String... nodes) {
        List<Integer> ids = new ArrayList<>();
        for (String n : nodes) {
            ids.add(Integer.parseInt(n));
        }
        return ids;
    }

    static void create(Admin admin, String name, int partitions, short replicas, String... settings) throws Exception {
        Map<String, String> config = new HashMap<>();
        for (String s : settings) {
            config.put(s.substring(0, s.indexOf('=')), s.substring(s.indexOf('=') + 1));
        }
        admin.createTopics(List.of(new NewTopic(name, partitions, replicas).configs(config))).all().get();
        led(admin, name, partitions);
    }

    /** led waits for leaders: a topic that the controller knows is not yet served. */
    static void led(Admin admin, String name, int partitions) throws Exception {
        for (int i = 0; i < 1200; i++) {
            try {
                TopicDescription d = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
                if (d.partitions().size() == partitions && d.partitions().stream().allMatch(p -> p.leader() != null && p.leader().id() >= 0)) {
                    return;
                }
            } catch (ExecutionException e) {
                // not there yet
            }
            Thread.sleep(50);
        }
        throw new IllegalStateException("no leader for " + name);
    }

    /** replicate ADDR TOPIC NODE... puts every partition on these nodes and waits until all of them are in sync. */
    static void replicate(String addr, String topic, String... nodes) throws Exception {
        List<Integer> ids = ids(nodes);
        try (Admin admin = admin(addr)) {
            TopicDescription d = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            Map<TopicPartition, Optional<NewPartitionReassignment>> all = new HashMap<>();
            d.partitions().forEach(p -> all.put(new TopicPartition(topic, p.partition()), Optional.of(new NewPartitionReassignment(ids))));
            admin.alterPartitionReassignments(all).all().get();
            for (int i = 0; i < 1200; i++) {
                d = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
                if (d.partitions().stream().allMatch(p -> p.isr().size() == ids.size())) {
                    return;
                }
                Thread.sleep(50);
            }
            throw new IllegalStateException("not in sync: " + d);
        }
    }

    static KafkaProducer<byte[], byte[]> producer(String addr, String codec, Object... more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", addr);
        p.put("compression.type", codec);
        p.put("linger.ms", "5");
        p.put("max.request.size", "4000000");
        for (int i = 0; i < more.length; i += 2) {
            p.put(more[i], more[i + 1]);
        }
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static byte[] bytes(String s) {
        return s == null ? null : s.getBytes(StandardCharsets.UTF_8);
    }

    /** fill ADDR COUNT makes a topic fill-CODEC for each codec, with whatever a record may be. */
    static void fill(String addr, int count) throws Exception {
        try (Admin admin = admin(addr)) {
            for (String codec : CODECS) {
                create(admin, "fill-" + codec, 1, (short) 1);
            }
        }
        for (String codec : CODECS) {
            Random random = new Random(7);
            try (KafkaProducer<byte[], byte[]> out = producer(addr, codec)) {
                for (int i = 0; i < count; i++) {
                    String key = i % 5 == 0 ? null : i % 5 == 1 ? "" : "key-" + i % 17;
                    String value = i % 7 == 3 ? null : i % 7 == 4 ? "" : "value " + i + " \u00e9\u4e16\ud83d\ude00 " + "ab".repeat(random.nextInt(300));
                    if (i == count / 2) {
                        // Text that hardly compresses.
                        StringBuilder b = new StringBuilder(900_000);
                        while (b.length() < 900_000) {
                            b.append((char) ('0' + random.nextInt(75)));
                        }
                        value = b.toString();
                    }
                    ProducerRecord<byte[], byte[]> r =
                        new ProducerRecord<>("fill-" + codec, 0, 1_700_000_000_000L + (i * 37L) % 1000 + i, bytes(key), bytes(value));
                    for (int h = 0; h < i % 4; h++) {
                        r.headers().add("h" + h / 2, h == 2 ? null : bytes("of " + i));
                    }
                    out.send(r);
                }
            }
        }
    }

    /**
     * load ADDR SECONDS TOPIC... produces to each topic: two idempotent producers that change their codec as they go, and one with transactions, every third
     * of which is aborted. Keys are few, values never repeat and end with a full stop.
     */
    static void load(String addr, int seconds, String... topics) throws Exception {
        long end = System.currentTimeMillis() + seconds * 1000L;
        List<Thread> all = new ArrayList<>();
        for (String topic : topics) {
            for (int t = 0; t < 3; t++) {
                String who = topic + "-" + t;
                boolean transactions = t == 2;
                Thread thread = new Thread(() -> produce(addr, topic, who, transactions, end));
                thread.start();
                all.add(thread);
            }
        }
        for (Thread t : all) {
            t.join();
        }
    }

    static void produce(String addr, String topic, String who, boolean transactions, long end) {
        Random random = new Random(who.hashCode());
        int n = 0;
        for (int round = 0; System.currentTimeMillis() < end; round++) {
            Object[] more = transactions
                ? new Object[] {"transactional.id", who, "transaction.timeout.ms", "10000"}
                : new Object[] {"enable.idempotence", "true"};
            try (KafkaProducer<byte[], byte[]> out = producer(addr, CODECS[round % CODECS.length], more)) {
                if (transactions) {
                    out.initTransactions();
                }
                for (int b = 0; b < 20 && System.currentTimeMillis() < end; b++) {
                    if (transactions) {
                        out.beginTransaction();
                    }
                    for (int i = 0; i < 40; i++, n++) {
                        String value = who + "/" + n + "/" + "x".repeat(random.nextInt(400)) + ".";
                        out.send(new ProducerRecord<>(topic, bytes("k" + random.nextInt(50)), bytes(value)));
                    }
                    if (transactions && b % 3 == 2) {
                        out.flush();
                        out.abortTransaction();
                    } else if (transactions) {
                        out.commitTransaction();
                    } else {
                        out.flush();
                    }
                    Thread.sleep(20);
                }
            } catch (InterruptedException | InvalidTxnStateException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** churn ADDR SECONDS TOPIC makes and deletes topics, and adds partitions to TOPIC, until the time is over. */
    static void churn(String addr, int seconds, String topic) throws Exception {
        long end = System.currentTimeMillis() + seconds * 1000L;
        try (Admin admin = admin(addr)) {
            int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
            for (int i = 0; System.currentTimeMillis() < end; i++) {
                String name = "churn-" + i;
                create(admin, name, 2, (short) 1);
                System.out.println("created " + name + " " + System.currentTimeMillis());
                Thread.sleep(1500);
                if (i % 2 == 0) {
                    admin.deleteTopics(Set.of(name)).all().get();
                    System.out.println("deleted " + name + " " + System.currentTimeMillis());
                }
                if (i % 4 == 1) {
                    partitions++;
                    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(partitions))).all().get();
                    System.out.println("partitions " + partitions + " " + System.currentTimeMillis());
                }
            }
        }
    }
}
