import { connectionOf, type KafkaJournal as Section } from './config.ts';
import type { KafkaJournal, KafkaJournalOptions } from './store.ts';

/**
 * Opens the journal of a fleet.
 * @throws MillraceError journal_unreadable naming the topic that does not exist
 */
export async function openKafkaJournal(
  section: Section & { readonly dedupWindow: number },
  parts: Omit<KafkaJournalOptions, keyof Section | 'dedupWindow' | 'connection' | 'topics'>,
): Promise<KafkaJournal> {
  const [{ KafkaJournal: Journal }, { Topics }] = await Promise.all([
    import('./store.ts'),
    import('./topics.ts'),
  ]);
  const options = { ...section, ...parts, connection: connectionOf(section) };
  const topics = new Topics(options);
  try {
    await topics.open();
    await topics.warnOfSettings();
    return new Journal({ ...options, topics });
  } catch (error) {
    await topics.close();
    throw error;
  }
}
