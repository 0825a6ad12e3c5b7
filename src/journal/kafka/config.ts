import { z } from 'zod';
import { bytes, choice, duration, text } from '../../lib/fields.ts';
import {
  connectionFields,
  isTopic,
  MECHANISMS,
  readConnection,
  type Connection,
} from '../../vendors/kafka/connection.ts';
import type { Waiting } from '../owner.ts';

const TOPIC = { pattern: String.raw`^[\w.-]{1,249}$`, hint: 'must be the name of a topic' };

const { brokers, tls, sasl: login } = connectionFields;

/** Keys of `journal` with `type: kafka`. Topics are never created. */
export const kafkaJournal = {
  brokers,
  tls,
  sasl: login
    .unwrap()
    .extend({ mechanism: choice(['none', ...MECHANISMS], 'none', 'With `type: kafka`: how to sign in.') })
    .prefault({}),
  topic: text('millrace.events', 'With `type: kafka`: the topic that events wait in.', TOPIC),
  quarantineTopic: text(
    'millrace.quarantine',
    'With `type: kafka`: the topic of quarantined events; compacted, so that `drop` and `retry` can remove them.',
    TOPIC,
  ),
  deadLetterTopic: text(
    'millrace.dead-letters',
    'With `type: kafka`: the topic of dead letters; compacted as well.',
    TOPIC,
  ),
  windowTopic: text(
    'millrace.window',
    'With `type: kafka`: the topic with the ids of `topic`, from which a deliverer quickly reads what came before; with as many partitions, and a retention of at least journal.dedupWindow.',
    TOPIC,
  ),
  group: text(
    'millrace',
    'With `type: kafka`: prefix of the names of the consumer groups: `<group>.<sink>` for each sink, and `<group>._window`.',
    TOPIC,
  ),
  session: duration(
    '30s',
    'With `type: kafka`: a deliverer that is silent for this long loses its partitions to the others.',
    { min: 1000 },
  ),
  timeout: duration(
    '8s',
    'With `type: kafka`: how long an event may take to all in-sync replicas before its delivery is answered with 503.',
    { min: 300 },
  ),
  maxEventBytes: bytes(
    '1MiB',
    'With `type: kafka`: largest record, and largest batch; at most `max.message.bytes` of the topics. An event with its headers may have 16 KiB less: a dead letter needs these for its reason.',
    { min: 65_536 },
  ),
  codec: choice(
    ['none', 'gzip', 'snappy', 'lz4', 'zstd'],
    'none',
    'With `type: kafka`: compresses batches in the topic.',
  ),
};

/** The parsed section. */
export type KafkaJournal = z.output<z.ZodObject<typeof kafkaJournal>>;

/** How to reach the cluster of a journal. @throws Error for a section that `checkKafkaJournal` refuses */
export function connectionOf(journal: KafkaJournal): Connection {
  return connect(journal, (_path, message) => {
    throw new Error(message);
  });
}

type Refuse = (path: readonly (string | number)[], message: string) => void;

function connect({ brokers: addresses, tls: secured, sasl }: KafkaJournal, refuse: Refuse): Connection {
  const { mechanism, ...rest } = sasl;
  const signIn = mechanism === 'none' ? undefined : { mechanism, ...rest };
  const fields = { brokers: addresses, tls: secured, sasl: signIn };
  return readConnection(fields, ({ path, message }) => refuse(path, message));
}

/** What the check needs of a config. */
interface CheckedConfig extends Waiting {
  readonly journal: { readonly type: string } & KafkaJournal;
  readonly sources: Readonly<Record<string, unknown>>;
  readonly sinks: Readonly<Record<string, { readonly continues: string | null }>>;
}

/** Checks the section, and the keys that it excludes. */
export function checkKafkaJournal(
  { journal, acknowledge, sources, sinks }: CheckedConfig,
  refuse: Refuse,
): void {
  if (journal.type === 'local') {
    if (journal.brokers.length > 0) refuse(['journal', 'brokers'], 'needs journal.type: kafka');
    return;
  }
  const { eventHubs } = connect(journal, (path, message) => refuse(['journal', ...path], message));
  if (eventHubs)
    refuse(['journal', 'brokers'], 'must not be Event Hubs, which does not promise an idempotent producer');
  const topics = TOPICS.map((key) => journal[key]);
  for (const [index, key] of TOPICS.entries())
    if (!isTopic(journal[key]) || topics.indexOf(journal[key]) !== index)
      refuse(['journal', key], 'must be the name of a topic of its own');
  if (acknowledge === 'delivered')
    refuse(['acknowledge'], 'must be journaled with journal.type: kafka: the topic is the journal');
  for (const name of Object.keys(sources))
    refuse(['sources', name], 'needs journal.type: local, which keeps how far a source has been read');
  for (const [name, { continues }] of Object.entries(sinks))
    if (continues !== null)
      refuse(['sinks', name, 'continues'], 'needs journal.type: local; keep the name of the sink');
}

const TOPICS = ['topic', 'quarantineTopic', 'deadLetterTopic', 'windowTopic'] as const;
