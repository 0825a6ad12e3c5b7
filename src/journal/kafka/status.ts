import { MillraceError } from '../../core/errors.ts';
import type { CursorStatus, JournalStatus } from '../../core/journal.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import type { Cluster, Span } from './cluster.ts';

interface StatusOptions {
  readonly topic: string;
  /** Prefix of the names of the consumer groups. */
  readonly group: string;
  /** Names of the present sinks. */
  readonly sinks: () => readonly string[];
  readonly cluster: Cluster;
  readonly countSetAside: () => Promise<Pick<JournalStatus, 'quarantined' | 'deadLetters'>>;
}

/** Milliseconds for which an answer is used again: each asks the brokers. */
const STATUS_AGE = 2000;
const MOST_REMEMBERED = 10_000;

/** How far the group of each sink is in the topic of events, and how old the oldest event is that waits for it. */
export class TopicStatus {
  readonly #options: StatusOptions;
  /** When records were written, by partition and offset: groups are often at the same offset, and stay there in trouble. */
  readonly #times = new Map<string, number>();
  #last: { readonly at: number; readonly answer: Promise<JournalStatus> } | null = null;

  constructor(options: StatusOptions) {
    this.#options = options;
  }

  /** @throws MillraceError journal_unknown when the brokers have never answered: they may be starting */
  status(): Promise<JournalStatus> {
    const now = performance.now();
    const last = this.#last;
    if (last !== null && now - last.at <= STATUS_AGE) return last.answer;
    // While no broker answers, the last answer is better than no metrics.
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
    const { topic, sinks, cluster, countSetAside } = this.#options;
    const spans = await cluster.spans(topic);
    const [firstSeq, lastSeq] = [sum(spans.map(({ from }) => from)), sum(spans.map(({ to }) => to))];
    const cursors = await Promise.all(sinks().map((sink) => this.#cursorOf(sink, spans, lastSeq)));
    return {
      path: `kafka:${topic}`,
      events: lastSeq - firstSeq,
      firstSeq,
      lastSeq,
      bytes: 0,
      maxBytes: 0,
      ...(await countSetAside()),
      damaged: 0,
      cursors,
    };
  }

  async #cursorOf(sink: string, spans: readonly Span[], lastSeq: number): Promise<CursorStatus> {
    const { topic, group, cluster } = this.#options;
    const partitions = spans.map(({ partition }) => partition);
    const checkpoints = await cluster.group(`${group}.${sink}`, topic).checkpoints(partitions);
    // What was deleted before the sink had it does not wait any more.
    const left = spans.map((span) => {
      return { ...span, from: Math.max(span.from, checkpoints.get(span.partition)?.offset ?? 0) };
    });
    const behind = left.filter(({ from, to }) => from < to);
    const times = await Promise.all(behind.map((span) => this.#timeOf(span)));
    const seq = sum(left.map(({ from }) => from));
    const backlogAge = Math.max(0, ...times.map((time) => Date.now() - time));
    return { sink, seq, backlog: Math.max(0, lastSeq - seq), backlogBytes: 0, backlogAge };
  }

  /** When the first record of a span was written; now if it has none. */
  async #timeOf(span: Span): Promise<number> {
    const key = `${span.partition}/${span.from}`;
    const known = this.#times.get(key);
    if (known !== undefined) return known;
    const { topic, cluster } = this.#options;
    const first = await cluster.first(topic, span);
    if (first === null) return Date.now();
    if (this.#times.size >= MOST_REMEMBERED) this.#times.clear();
    this.#times.set(key, first.time);
    return first.time;
  }
}

function sum(offsets: readonly number[]): number {
  return offsets.reduce((total, offset) => total + offset, 0);
}
