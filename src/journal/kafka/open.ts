import { connectionOf, type KafkaJournal as Section } from './config.ts';
import type { KafkaJournal, KafkaJournalOptions } from './store.ts';

/**
 * The journal of a fleet, as `journal` of a config says.
 * @throws MillraceError journal_unreadable naming the topic that is not there
 */
export async function openKafkaJournal(
  section: Section & { readonly dedupWindow: number },
  parts: Omit<KafkaJournalOptions, keyof Section | 'dedupWindow' | 'connection' | 'topics'>,
): Promise<KafkaJournal> {
  const { KafkaJournal: Journal } = await import('./store.ts');
  const { Topics } = await import('./topics.ts');
  const connection = connectionOf(section);
  const topics = new Topics({ ...section, connection, log: parts.log });
  try {
    await topics.open();
    await topics.warnOfSettings();
    return new Journal({ ...section, ...parts, connection, topics });
  } catch (error) {
    await topics.close();
    throw error;
  }
}
