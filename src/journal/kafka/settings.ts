import type { Cluster } from './cluster.ts';

/** What a topic is for says how it must be kept. */
export interface TopicUse {
  readonly topic: string;
  /**
   * `all`: every record, for a time. `until taken out`: the last of each key, until a tombstone. `ids`: every record for
   * `least` milliseconds, though the same again would do.
   */
  readonly keeps: 'all' | 'until taken out' | 'ids';
  /** Of one record, at most. */
  readonly maxBytes: number;
  readonly least?: number;
}

const UNLIMITED = -1;

/** What of a topic's settings loses events sooner or later, in words. Who may not ask is told nothing. */
export async function dangersOf(cluster: Cluster, use: TopicUse): Promise<string[]> {
  const settings = await cluster.settings(use.topic).catch(() => null);
  return settings === null ? [] : dangersIn(settings, use);
}

/** @param settings by key, as brokers name them; what is not among them is not judged */
export function dangersIn(
  settings: ReadonlyMap<string, string>,
  { keeps, maxBytes, least }: Omit<TopicUse, 'topic'>,
): string[] {
  const dangers: string[] = [];
  const number = (name: string): number | null => {
    const text = settings.get(name) ?? '';
    return text === '' ? null : Number(text);
  };
  const policy = settings.get('cleanup.policy');
  const [compacts, deletes] = ['compact', 'delete'].map((each) => policy?.split(',').includes(each) === true);
  if (policy !== undefined && keeps === 'until taken out' && (compacts !== true || deletes === true))
    dangers.push(`cleanup.policy is ${policy}: what waits for a person is deleted; set it to compact`);
  if (compacts === true && keeps === 'all')
    dangers.push(`cleanup.policy is ${policy}: of each user only the last event is kept; set it to delete`);
  const retention = number('retention.ms');
  if (
    least !== undefined &&
    deletes === true &&
    retention !== null &&
    retention !== UNLIMITED &&
    retention < least
  )
    dangers.push(
      `retention.ms is ${retention}, less than journal.dedupWindow: a new deliverer forgets ids that came before, and forwards them again`,
    );
  const size = number('retention.bytes');
  if (deletes === true && keeps !== 'until taken out' && size !== null && size !== UNLIMITED)
    dangers.push(
      `retention.bytes is ${size}: when so much has come, ${keeps === 'all' ? 'events are deleted that a sink has not had' : 'ids are forgotten'}; set it to -1`,
    );
  const most = number('max.message.bytes');
  if (most !== null && most < maxBytes)
    dangers.push(
      keeps === 'ids'
        ? `max.message.bytes is ${most}, less than the ${maxBytes} that the ids of a chunk can take: a new deliverer reads the events themselves`
        : `max.message.bytes is ${most}, less than journal.maxEventBytes: some events cannot be kept`,
    );
  if (settings.get('unclean.leader.election.enable') === 'true')
    dangers.push(
      'unclean.leader.election.enable is true: a broker that has not got all can lead, and what it lacks is lost; set it to false',
    );
  if (keeps !== 'ids' && number('min.insync.replicas') === 1)
    dangers.push(
      'min.insync.replicas is 1: what is answered with 2xx may be on one broker alone; set it to 2, with three replicas',
    );
  return dangers;
}
