import { MillraceError, messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { parseMasterKey } from '../../seal/master-key.ts';
import type { SharedKeys } from '../../seal/shared-keys.ts';
import { toFailure } from '../../sinks/kafka/failure.ts';
import { connectionOf, type KafkaJournal as Section } from './config.ts';
import type { KafkaJournal, KafkaJournalOptions } from './store.ts';

/**
 * The journal of a fleet, as `journal` of a config says.
 * @throws MillraceError journal_unreadable naming the topic that is not there
 */
export async function openKafkaJournal(
  section: Section & { readonly dedupWindow: number },
  parts: Pick<
    KafkaJournalOptions,
    'maxWaiting' | 'targetsOf' | 'sinks' | 'handOver' | 'flushSink' | 'isErased' | 'log'
  > & { readonly openStore: (place: string) => Promise<ObjectStore> },
): Promise<KafkaJournal> {
  const { KafkaJournal: Journal } = await import('./store.ts');
  const { Records } = await import('./records.ts');
  const records = new Records(await openKeys(section, parts), section.timeout);
  const journal = new Journal({ ...section, ...parts, connection: connectionOf(section), records });
  try {
    await journal.open();
  } catch (error) {
    await journal.close();
    throw error;
  }
  return journal;
}

/** The keys that records are sealed with; null where they are not. @throws MillraceError keys_unusable, master_key_wrong */
async function openKeys(
  section: Section,
  { openStore, log }: { readonly openStore: (place: string) => Promise<ObjectStore>; readonly log: SinkLog },
): Promise<SharedKeys | null> {
  const { store: place, masterKey } = section.encrypt;
  if (place === null || masterKey === null) return null;
  const { SharedKeys: Keys } = await import('../../seal/shared-keys.ts');
  const store = await openStore(place);
  try {
    const isNew = (): Promise<boolean> => isEmpty(section);
    const master = parseMasterKey(masterKey);
    return await Keys.open({ store, master, lease: section.session, isNew, log });
  } catch (error) {
    await store.close();
    if (error instanceof MillraceError) throw error;
    throw new MillraceError('keys_unusable', `journal.encrypt.store: ${messageOf(error)}`, { cause: error });
  }
}

/** Whether nothing was ever written to the topics that are sealed. */
async function isEmpty(section: Section): Promise<boolean> {
  const { Cluster } = await import('./cluster.ts');
  const cluster = await Cluster.load(connectionOf(section), section.timeout, 0);
  try {
    for (const topic of [section.topic, section.quarantineTopic, section.deadLetterTopic])
      try {
        const partitions = [...(await cluster.topic(topic)).leaders.keys()];
        const ends = await cluster.offsets(topic, partitions, 'latest');
        if (partitions.some((partition) => ends.get(partition) !== 0)) return false;
      } catch (error) {
        throw new MillraceError('journal_unreadable', `topic ${topic}: ${toFailure(error).reason}`, {
          cause: error,
        });
      }
    return true;
  } finally {
    await cluster.close();
  }
}
