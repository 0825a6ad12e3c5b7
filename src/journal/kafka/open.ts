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
  >,
): Promise<KafkaJournal> {
  const { KafkaJournal: Journal } = await import('./store.ts');
  const journal = new Journal({ ...section, ...parts, connection: connectionOf(section) });
  try {
    await journal.open();
  } catch (error) {
    await journal.close();
    throw error;
  }
  return journal;
}
