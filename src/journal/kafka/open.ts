import { MillraceError, messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { KeyPlace } from '../../seal/key-place.ts';
import { parseMasterKey } from '../../seal/master-key.ts';
import { PlaceWitness, said } from '../../seal/place-witness.ts';
import type { SharedKeys } from '../../seal/shared-keys.ts';
import { connectionOf, type KafkaJournal as Section } from './config.ts';
import { TopicKeyNotes } from './key-notes.ts';
import { patiently } from './patience.ts';
import type { KafkaJournal, KafkaJournalOptions } from './store.ts';
import type { Topics } from './topics.ts';

interface Around {
  readonly openStore: (place: string) => Promise<ObjectStore>;
  readonly log: SinkLog;
}

type FleetSection = Section & { readonly dedupWindow: number };

/**
 * The journal of a fleet, as `journal` of a config says.
 * @throws MillraceError journal_unreadable naming the topic that is not there; keys_elsewhere, keys_stale, keys_unusable,
 * master_key_wrong
 */
export async function openKafkaJournal(
  section: FleetSection,
  parts: Pick<
    KafkaJournalOptions,
    'maxWaiting' | 'targetsOf' | 'sinks' | 'handOver' | 'flushSink' | 'isErased' | 'log'
  > &
    Around,
): Promise<KafkaJournal> {
  const { KafkaJournal: Journal } = await import('./store.ts');
  const { Records } = await import('./records.ts');
  const topics = await openTopics(section, parts.log);
  let keys: SharedKeys | null = null;
  try {
    await topics.warnOfSettings();
    keys = await openKeys(section, parts, topics);
    const records = new Records(keys, section.timeout);
    return new Journal({ ...section, ...parts, connection: connectionOf(section), topics, records });
  } catch (error) {
    await topics.close();
    await keys?.close();
    throw error;
  }
}

async function openTopics(section: FleetSection, log: SinkLog): Promise<Topics> {
  const { Topics: Opened } = await import('./topics.ts');
  const topics = new Opened({ ...section, connection: connectionOf(section), log });
  try {
    await topics.open();
    return topics;
  } catch (error) {
    await topics.close();
    throw error;
  }
}

/** The keys that records are sealed with; null where they are not. */
async function openKeys(
  section: FleetSection,
  { openStore, log }: Around,
  topics: Topics,
): Promise<SharedKeys | null> {
  const { store: place, masterKey } = section.encrypt;
  const notes = new TopicKeyNotes(topics, section);
  if (place === null || masterKey === null) {
    const why = await notes.whySealed();
    if (why === null) return null;
    throw new MillraceError('keys_elsewhere', `journal.encrypt.store is missing, and ${why}`);
  }
  const { SharedKeys: Keys } = await import('../../seal/shared-keys.ts');
  return openPlace(place, openStore, (store) => {
    const isNew = async (): Promise<boolean> =>
      (await isUntied(section, topics, store)) && (await isEmpty(section, topics));
    const master = parseMasterKey(masterKey);
    return Keys.open({ store, master, lease: section.session, isNew, notes, log });
  });
}

/**
 * Runs work of a person on the place of the keys, while nobody has to have it open.
 * @param isBegun whether an empty one is begun, for topics with events that are not sealed
 * @throws MillraceError usage without journal.encrypt; as `openKafkaJournal`
 */
export async function withKeyPlace<T>(
  section: FleetSection,
  { openStore, log }: Around,
  isBegun: boolean,
  work: (witness: PlaceWitness, store: ObjectStore, place: KeyPlace) => Promise<T>,
): Promise<T> {
  const { store: place, masterKey } = section.encrypt;
  if (place === null || masterKey === null)
    throw new MillraceError('usage', 'the config has no journal.encrypt');
  const topics = await openTopics(section, log);
  try {
    return await openPlace(place, openStore, async (store) => {
      const isNew = async (): Promise<boolean> => (await isUntied(section, topics, store)) && isBegun;
      const opened = await KeyPlace.open(store, parseMasterKey(masterKey), isNew);
      const result = await work(new PlaceWitness(opened, new TopicKeyNotes(topics, section)), store, opened);
      await store.close();
      return result;
    });
  } finally {
    await topics.close();
  }
}

/** Closes the store when the work fails. */
async function openPlace<T>(
  place: string,
  openStore: Around['openStore'],
  work: (store: ObjectStore) => Promise<T>,
): Promise<T> {
  const store = await openStore(place);
  try {
    return await work(store);
  } catch (error) {
    await store.close();
    if (error instanceof MillraceError) throw error;
    throw new MillraceError('keys_unusable', `journal.encrypt.store: ${messageOf(error)}`, { cause: error });
  }
}

/** Whether no place is noted. @throws MillraceError keys_unusable where one is: this is not it, or is not mounted */
async function isUntied(section: FleetSection, topics: Topics, { url }: ObjectStore): Promise<true> {
  const notes = new TopicKeyNotes(topics, section);
  const [first] = await notes.read();
  if (first === undefined) return true;
  throw new MillraceError(
    'keys_unusable',
    `journal.encrypt.store: ${url} has no keys: is it mounted? ${said(notes, first)}`,
  );
}

/** Whether nothing was ever written to the topics that are sealed. */
async function isEmpty(section: Section, topics: Topics): Promise<boolean> {
  const cluster = await topics.look();
  for (const topic of [section.topic, section.quarantineTopic, section.deadLetterTopic]) {
    const isEmptyNow = await patiently(topic, async () => {
      const partitions = [...(await cluster.topic(topic)).leaders.keys()];
      const ends = await cluster.offsets(topic, partitions, 'latest');
      return partitions.every((partition) => ends.get(partition) === 0);
    });
    if (!isEmptyNow) return false;
  }
  return true;
}
