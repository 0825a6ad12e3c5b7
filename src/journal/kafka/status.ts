import { MillraceError } from '../../core/errors.ts';
import type { CursorStatus, JournalStatus } from '../../core/journal.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import type { Cluster } from './cluster.ts';
import type { Letters } from './set-aside-events.ts';

export interface CountedTopic {
  readonly topic: string;
  /** Beginning of the names of the consumer groups. */
  readonly group: string;
  /** Names of those of now. */
  readonly sinks: () => readonly string[];
}

/** Milliseconds for which a status holds: each asks the brokers. */
const STATUS_AGE = 2000;
/** One batch, which brokers give whole. */
const ONE = { bytes: 1, wait: 0 } as const;
const MOST_REMEMBERED = 10_000;

/** How far each sink's group is in the topic of events, and for how long the oldest of what is left has waited. */
export class TopicStatus {
  readonly #options: CountedTopic;
  readonly #connect: () => Promise<Cluster>;
  readonly #letters: Pick<Letters, 'counts'>;
  /** When a record came, by partition and offset: sinks stand at the same ones, and one that is in trouble stays there. */
  readonly #times = new Map<string, number>();
  #last: { readonly at: number; readonly answer: Promise<JournalStatus> } | null = null;

  constructor(options: CountedTopic, connect: () => Promise<Cluster>, letters: Pick<Letters, 'counts'>) {
    this.#options = options;
    this.#connect = connect;
    this.#letters = letters;
  }

  /** @throws MillraceError journal_unknown when the brokers could never be asked: they may be about to start */
  status(): Promise<JournalStatus> {
    const now = performance.now();
    const last = this.#last;
    if (last !== null && now - last.at <= STATUS_AGE) return last.answer;
    // While no broker answers, what was last known is better than no metrics at all.
    const answer = this.#ask().catch(async (error: unknown) => {
      const known = await last?.answer.catch(() => undefined);
      if (known !== undefined) return known;
      if (error instanceof MillraceError) throw error;
      const detail = `topic ${this.#options.topic}: ${toFailure(error).reason}`;
      throw new MillraceError('journal_unknown', detail, { cause: error });
    });
    this.#last = { at: now, answer };
    return answer;
  }

  async #ask(): Promise<JournalStatus> {
    const { topic, group, sinks } = this.#options;
    const cluster = await this.#connect();
    const { id, leaders } = await cluster.topic(topic);
    const all = [...leaders.keys()];
    const spans = await cluster.spans(topic);
    const [firstSeq, lastSeq] = [sum(spans.map(({ from }) => from)), sum(spans.map(({ to }) => to))];
    const timeOf = (partition: number, offset: number): Promise<number> =>
      this.#timeOf(cluster, { name: topic, id, leader: leaders[partition] ?? -1 }, partition, offset);
    const cursorOf = async (sink: string): Promise<CursorStatus> => {
      const { groups } = cluster;
      const name = `${group}.${sink}`;
      const committed = await groups.committed(name, topic, all);
      // What was deleted before the sink had it does not wait any more.
      const left = spans.map((span) => {
        return { ...span, from: Math.max(span.from, committed.get(span.partition)?.offset ?? 0) };
      });
      const behind = left.filter(({ from, to }) => from < to);
      const times = await Promise.all(behind.map(({ partition, from }) => timeOf(partition, from)));
      const seq = sum(left.map(({ from }) => from));
      const backlogAge = Math.max(0, ...times.map((time) => Date.now() - time));
      return { sink, seq, backlog: Math.max(0, lastSeq - seq), backlogBytes: 0, backlogAge };
    };
    const cursors = await Promise.all(sinks().map(cursorOf));
    return {
      path: `kafka:${topic}`,
      events: lastSeq - firstSeq,
      firstSeq,
      lastSeq,
      bytes: 0,
      maxBytes: 0,
      ...(await this.#letters.counts()),
      damaged: 0,
      cursors,
    };
  }

  /** When the first record from an offset on was written; now, where there is none. */
  async #timeOf(
    cluster: Cluster,
    { leader, ...topic }: { readonly name: string; readonly id: string; readonly leader: number },
    partition: number,
    offset: number,
  ): Promise<number> {
    const key = `${partition}/${offset}`;
    const known = this.#times.get(key);
    if (known !== undefined) return known;
    const [fetched] = await cluster.fetch(leader, topic, new Map([[partition, offset]]), ONE);
    if (fetched === undefined || fetched.error !== 'NONE') {
      // Another broker leads: the next look finds it.
      await cluster.topic(topic.name, true);
      throw new Error(`topic ${topic.name}, partition ${partition}: ${fetched?.error ?? 'no answer'}`);
    }
    const time = fetched.records[0]?.time;
    if (time === undefined) return Date.now();
    if (this.#times.size >= MOST_REMEMBERED) this.#times.clear();
    this.#times.set(key, time);
    return time;
  }
}

function sum(offsets: readonly number[]): number {
  return offsets.reduce((total, offset) => total + offset, 0);
}
