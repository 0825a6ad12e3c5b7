import { z } from 'zod';
import { bytes, choice, duration, NOT_EMPTY, optionalText, text } from '../../lib/fields.ts';
import {
  connectionFields,
  readConnection,
  type Connection,
  isTopic,
} from '../../vendors/kafka/connection.ts';
import type { Waiting } from '../owner.ts';

const TOPIC = { pattern: String.raw`^[\w.-]{1,249}$`, hint: 'must be the name of a topic' };

const { brokers, tls } = connectionFields;

/** What `journal` has beside that with `type: kafka`. Topics are never created. */
export const kafkaJournal = {
  brokers,
  tls,
  sasl: z
    .strictObject({
      mechanism: choice(
        ['none', 'plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'],
        'none',
        'With `type: kafka`: how to sign in.',
      ),
      username: optionalText('User name; not with `oauthbearer`.', NOT_EMPTY),
      password: optionalText('Password; not with `oauthbearer`.', { ...NOT_EMPTY, sensitive: true }),
      tokenFile: optionalText(
        'For `oauthbearer`: a file with the token, which is read at each sign-in.',
        NOT_EMPTY,
      ),
    })
    .prefault({}),
  topic: text('millrace.events', 'With `type: kafka`: the topic that events wait in.', TOPIC),
  quarantineTopic: text(
    'millrace.quarantine',
    'With `type: kafka`: the topic of quarantined events; compacted, so that `drop` and `retry` take them out.',
    TOPIC,
  ),
  deadLetterTopic: text(
    'millrace.dead-letters',
    'With `type: kafka`: the topic of dead letters; compacted as well.',
    TOPIC,
  ),
  windowTopic: text(
    'millrace.window',
    'With `type: kafka`: the topic with the ids of `topic`, from which a deliverer learns quickly what came before; with as many partitions, and a retention of journal.dedupWindow at least.',
    TOPIC,
  ),
  group: text(
    'millrace',
    'With `type: kafka`: beginning of the names of the consumer groups: `<group>.<sink>` for each sink, and `<group>._window`.',
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
    'With `type: kafka`: largest record, and largest batch; at most what the topics take (`max.message.bytes`). An event may have 16 KiB less, with its headers: they are for what a dead letter says of it.',
    { min: 65_536 },
  ),
  codec: choice(
    ['none', 'gzip', 'snappy', 'lz4', 'zstd'],
    'none',
    'With `type: kafka`: compresses batches in the topic.',
  ),
};

/** The section as it is once parsed. */
export type KafkaJournal = z.output<z.ZodObject<typeof kafkaJournal>>;

/** How to reach the cluster of a journal. @throws for one that `checkKafkaJournal` has found wrong */
export function connectionOf(journal: KafkaJournal): Connection {
  return connect(journal, (_path, message) => {
    throw new Error(message);
  });
}

type Say = (path: readonly (string | number)[], message: string) => void;

function connect({ brokers: addresses, tls: secured, sasl }: KafkaJournal, refuse: Say): Connection {
  const { mechanism, ...login } = sasl;
  const fields = {
    brokers: addresses,
    tls: secured,
    sasl: mechanism === 'none' ? undefined : { mechanism, ...login },
  };
  return readConnection(fields, ({ path, message }) => refuse(path, message));
}

interface Around extends Waiting {
  readonly journal: { readonly type: string } & KafkaJournal;
  readonly sources: Readonly<Record<string, unknown>>;
  readonly sinks: Readonly<Record<string, { readonly continues: string | null }>>;
}

/** What a journal in a topic demands of the other keys. */
export function checkKafkaJournal({ journal, acknowledge, sources, sinks }: Around, wrong: Say): void {
  if (journal.type === 'local') {
    if (journal.brokers.length > 0) wrong(['journal', 'brokers'], 'needs journal.type: kafka');
    return;
  }
  const { eventHubs } = connect(journal, (path, message) => wrong(['journal', ...path], message));
  if (eventHubs)
    wrong(['journal', 'brokers'], 'must not be Event Hubs, which does not promise an idempotent producer');
  const topics = TOPICS.map((key) => journal[key]);
  for (const [index, key] of TOPICS.entries())
    if (!isTopic(journal[key]) || topics.indexOf(journal[key]) !== index)
      wrong(['journal', key], 'must be the name of a topic of its own');
  if (acknowledge === 'delivered')
    wrong(['acknowledge'], 'must be journaled with journal.type: kafka: the topic is the journal');
  for (const name of Object.keys(sources))
    wrong(['sources', name], 'needs journal.type: local, which keeps how far a source has been read');
  for (const [name, { continues }] of Object.entries(sinks))
    if (continues !== null)
      wrong(['sinks', name, 'continues'], 'needs journal.type: local; keep the name of the sink');
}

const TOPICS = ['topic', 'quarantineTopic', 'deadLetterTopic', 'windowTopic'] as const;
