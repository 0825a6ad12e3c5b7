import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Looks at a cluster and writes to it with Apache's own clients: a command a line, answered by lines and a dot. */
public final class Oracle {
  private static Properties properties;

  public static void main(String[] arguments) throws Exception {
    properties = new Properties();
    for (String argument : arguments) {
      String[] parts = argument.split("=", 2);
      properties.put(parts[0], parts[1]);
    }
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      StringBuilder answer = new StringBuilder();
      try {
        run(line.split(" "), answer);
      } catch (Exception error) {
        answer.append("! ").append(String.valueOf(error).replace('\n', ' ')).append('\n');
      }
      System.out.print(answer.append(".\n"));
      System.out.flush();
    }
  }

  private static void run(String[] words, StringBuilder answer) throws Exception {
    switch (words[0]) {
      case "create" -> create(words);
      case "allow" -> allow(words);
      case "grow" -> grow(words);
      case "trim" -> trim(words);
      case "delete" -> delete(words[1]);
      case "read" -> read(words[1], answer);
      case "write" -> write(words);
      case "committed" -> committed(words[1], answer);
      case "commit" -> commit(words);
      case "leader" -> leader(words[1], answer);
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  /** create TOPIC PARTITIONS REPLICAS [KEY=VALUE…] */
  private static void create(String[] words) throws Exception {
    Map<String, String> config = new HashMap<>();
    for (int at = 4; at < words.length; at++) config.put(words[at].split("=")[0], words[at].split("=")[1]);
    NewTopic topic = new NewTopic(words[1], Integer.parseInt(words[2]), Short.parseShort(words[3])).configs(config);
    try (Admin admin = Admin.create(properties)) {
      admin.createTopics(List.of(topic)).all().get();
      // The brokers hear of it a moment after the controller has made it.
      while (!isKnown(admin, words[1])) Thread.sleep(10);
    }
  }

  private static boolean isKnown(Admin admin, String topic) throws Exception {
    try {
      admin.describeTopics(List.of(topic)).allTopicNames().get();
      return true;
    } catch (ExecutionException error) {
      if (error.getCause() instanceof UnknownTopicOrPartitionException) return false;
      throw error;
    }
  }

  /** allow USER TOPIC: to write to it */
  private static void allow(String[] words) throws Exception {
    ResourcePattern topic = new ResourcePattern(ResourceType.TOPIC, words[2], PatternType.LITERAL);
    AccessControlEntry entry =
        new AccessControlEntry("User:" + words[1], "*", AclOperation.WRITE, AclPermissionType.ALLOW);
    try (Admin admin = Admin.create(properties)) {
      admin.createAcls(List.of(new AclBinding(topic, entry))).all().get();
    }
  }

  /** grow TOPIC PARTITIONS */
  private static void grow(String[] words) throws Exception {
    try (Admin admin = Admin.create(properties)) {
      admin.createPartitions(Map.of(words[1], NewPartitions.increaseTo(Integer.parseInt(words[2])))).all().get();
    }
  }

  /** delete TOPIC */
  private static void delete(String topic) throws Exception {
    try (Admin admin = Admin.create(properties)) {
      admin.deleteTopics(List.of(topic)).all().get();
    }
  }

  /** trim TOPIC PARTITION OFFSET: deletes what lies before it, as retention does */
  private static void trim(String[] words) throws Exception {
    try (Admin admin = Admin.create(properties)) {
      TopicPartition partition = new TopicPartition(words[1], Integer.parseInt(words[2]));
      admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(Long.parseLong(words[3])))).all().get();
    }
  }

  /** read TOPIC: a line a record: partition offset key value [name=value…], all in base64. */
  private static void read(String topic, StringBuilder answer) {
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partitions =
          consumer.partitionsFor(topic).stream().map(each -> new TopicPartition(topic, each.partition())).toList();
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
        consumer.poll(Duration.ofMillis(200)).forEach(each -> {
          answer.append(each.partition()).append(' ').append(each.offset()).append(' ');
          answer.append(encode(each.key())).append(' ').append(encode(each.value()));
          each.headers().forEach(header ->
              answer.append(' ').append(header.key()).append('=').append(encode(header.value())));
          answer.append('\n');
        });
      }
    }
  }

  /** write TOPIC KEY VALUE [name=value…]: key and values in base64, "-" for none. */
  private static void write(String[] words) throws Exception {
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
      ProducerRecord<byte[], byte[]> message = new ProducerRecord<>(words[1], decode(words[2]), decode(words[3]));
      for (int at = 4; at < words.length; at++) {
        String[] header = words[at].split("=", 2);
        message.headers().add(header[0], decode(header[1]));
      }
      producer.send(message).get();
    }
  }

  /** committed GROUP: a line a partition: topic partition offset text */
  private static void committed(String group, StringBuilder answer) throws Exception {
    try (Admin admin = Admin.create(properties)) {
      admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) ->
          answer.append(partition.topic()).append(' ').append(partition.partition()).append(' ')
              .append(offset.offset()).append(' ').append(encode(offset.metadata().getBytes(StandardCharsets.UTF_8))).append('\n'));
    }
  }

  /** commit GROUP TOPIC PARTITION OFFSET TEXT: as tools do that bring a group elsewhere; the text in base64 */
  private static void commit(String[] words) throws Exception {
    try (Admin admin = Admin.create(properties)) {
      TopicPartition partition = new TopicPartition(words[2], Integer.parseInt(words[3]));
      String text = new String(decode(words[5]), StandardCharsets.UTF_8);
      OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(words[4]), text);
      admin.alterConsumerGroupOffsets(words[1], Map.of(partition, offset)).all().get();
    }
  }

  /** leader TOPIC: the broker that leads its first partition; -1 while none does */
  private static void leader(String topic, StringBuilder answer) throws Exception {
    try (Admin admin = Admin.create(properties)) {
      var partitions = admin.describeTopics(Set.of(topic)).allTopicNames().get().get(topic).partitions();
      var leader = partitions.get(0).leader();
      answer.append(leader == null ? -1 : leader.id()).append('\n');
    }
  }

  private static String encode(byte[] bytes) {
    return bytes == null ? "-" : bytes.length == 0 ? "_" : Base64.getEncoder().encodeToString(bytes);
  }

  private static byte[] decode(String text) {
    return text.equals("-") ? null : text.equals("_") ? new byte[0] : Base64.getDecoder().decode(text);
  }
}
