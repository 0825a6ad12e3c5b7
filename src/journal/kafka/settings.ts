import type { Cluster } from './cluster.ts';

/** What a topic is for says how it must be kept. */
interface TopicUse {
  readonly topic: string;
  /** Whether its last record of each key stays until a tombstone; otherwise all of it, for a time. */
  readonly isCompacted: boolean;
  readonly maxBytes: number;
}

/** What of a topic's settings loses events sooner or later, in words. Who may not ask is told nothing. */
export async function dangersOf(
  cluster: Cluster,
  { topic, isCompacted, maxBytes }: TopicUse,
): Promise<string[]> {
  const settings = await cluster.settings(topic).catch(() => null);
  const policy = settings?.get('cleanup.policy')?.split(',');
  const dangers: string[] = [];
  if (policy !== undefined && isCompacted && (!policy.includes('compact') || policy.includes('delete')))
    dangers.push(`cleanup.policy is ${policy.join()}: what waits for a person is deleted; set it to compact`);
  if (policy?.includes('compact') === true && !isCompacted)
    dangers.push(
      `cleanup.policy is ${policy.join()}: of each user only the last event is kept; set it to delete`,
    );
  const most = Number(settings?.get('max.message.bytes') ?? Infinity);
  if (most < maxBytes)
    dangers.push(`max.message.bytes is ${most}, less than journal.maxEventBytes: some events cannot be kept`);
  return dangers;
}
