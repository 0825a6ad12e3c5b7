import { MillraceError } from '../../core/errors.ts';
import type { IsErased } from '../../core/ingest.ts';
import type { CountKind, EventHead, JournalAccount } from '../../core/journal.ts';
import { parseTarget } from '../../core/route.ts';
import { NO_ROUTES } from '../../core/route-record.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { HourTally } from '../hour-counts.ts';
import type { Cluster, Span } from './cluster.ts';
import type { Verdict } from './id-table.ts';
import { recordedEventOf, type RecordedEvent } from './record.ts';
import { isSettledIn, type CommittedCheckpoint } from './settled-offsets.ts';
import { PartitionWindow, RELEASED, type WindowOptions } from './window.ts';

export interface AccountOptions extends WindowOptions {
  readonly group: string;
  readonly isErased: IsErased;
}

const NOT_COUNTED =
  'counted from the topic: what was dropped from quarantine, or came from users who were erased, is not in it';

/** A partition's records, with the seq before its first one. */
interface NumberedSpan extends Span {
  readonly base: number;
}

/**
 * What a reconciliation asks of the topic of events: partition after partition, what each record is by the order of the log,
 * and which sinks it waits for. All as of the call of `account`.
 */
export class TopicAccount {
  readonly #options: AccountOptions;
  readonly #cluster: Cluster;
  /** Checkpoints of each sink's group, by partition. */
  readonly #checkpoints = new Map<string, Promise<ReadonlyMap<number, CommittedCheckpoint>>>();
  /** Filled while the heads are read: the log is read once. */
  readonly #counts = new HourTally();
  #spans: readonly NumberedSpan[] = [];
  #lastSeq = 0;
  #period = { since: 0, until: 0 };
  #pages: AsyncGenerator<readonly EventHead[]> | null = null;

  constructor(options: AccountOptions, cluster: Cluster) {
    this.#options = options;
    this.#cluster = cluster;
  }

  /**
   * @param sinks those of the config
   * @throws MillraceError usage when the brokers have deleted events after `since`
   */
  async account(since: number, until: number, sinks: readonly string[]): Promise<JournalAccount> {
    const { topic } = this.#options;
    // Before the ends of the log are asked: what is confirmed lies before them.
    const { leaders } = await this.#cluster.topic(topic, true);
    for (const sink of sinks) await this.#checkpointsOf(sink, [...leaders.keys()]);
    let base = 0;
    this.#spans = (await this.#cluster.spans(topic)).map((span) => {
      const numbered = { ...span, base };
      base += span.to - span.from;
      return numbered;
    });
    this.#lastSeq = base;
    this.#period = { since, until };
    const begin = await this.#beginning();
    if (since < begin)
      throw new MillraceError(
        'usage',
        `the brokers have deleted events of before ${new Date(begin).toISOString()}: --since must not be before it`,
      );
    const tally = this.#counts;
    return {
      get counts() {
        return tally.hours;
      },
      firstSeq: 1,
      lastSeq: base,
      isSparse: true,
      cursors: [],
      countedSince: null,
      started: [],
      dropped: null,
      routes: NO_ROUTES,
      notes: [NOT_COUNTED],
    };
  }

  /** The next page, in the order of the seqs; after the last of `account`, what was written since. */
  async heads(after: number): Promise<readonly EventHead[]> {
    if (after === 0) this.#pages = this.#read();
    if (after >= this.#lastSeq) this.#pages = this.#readLate();
    for (;;) {
      const next = await this.#pages?.next();
      if (next === undefined || next.done === true) return [];
      const page = next.value.filter(({ seq }) => seq > after);
      if (page.length > 0) return page;
    }
  }

  async *#read(): AsyncGenerator<readonly EventHead[]> {
    const { topic, isErased } = this.#options;
    const all = this.#spans.map(({ partition }) => partition);
    for (const span of this.#spans) {
      const { partition, base, from } = span;
      const window = new PartitionWindow(partition, this.#options);
      for await (const page of this.#cluster.pages(topic, span)) {
        const heads: EventHead[] = [];
        for (const record of page.records) {
          const { recorded, verdict } = window.judge(record);
          if (recorded === null) continue;
          this.#count(recorded, verdict);
          if (verdict !== 'first') continue;
          const waits: string[] = [];
          const own = Map.groupBy((recorded.handling.only ?? []).map(parseTarget), ({ sink }) => sink);
          for (const [sink, targets] of own) {
            const checkpoint = (await this.#checkpointsOf(sink, all)).get(partition);
            const isSettled = ({ destination }: (typeof targets)[number]): boolean =>
              checkpoint !== undefined && isSettledIn(checkpoint, record.offset, destination);
            if (!targets.every(isSettled)) waits.push(sink);
          }
          const head = headOf(recorded, base + record.offset - from + 1);
          heads.push({ ...head, erased: isErased(recorded.event), waits });
        }
        yield heads;
      }
    }
  }

  /** Events after `account`, under seqs of no meaning: only that they exist is asked. */
  async *#readLate(): AsyncGenerator<readonly EventHead[]> {
    const { topic } = this.#options;
    const partitions = this.#spans.map(({ partition }) => partition);
    const ends = await this.#cluster.offsets(topic, partitions, 'latest');
    let seq = this.#lastSeq;
    for (const { partition, to: from } of this.#spans) {
      const span = { partition, from, to: ends.get(partition) ?? from };
      for await (const { records } of this.#cluster.pages(topic, span))
        yield records.flatMap((record) => {
          const recorded = recordedEventOf(record);
          return recorded === null ? [] : [headOf(recorded, (seq += 1))];
        });
    }
  }

  #count({ event: { receivedAt: at }, again }: RecordedEvent, verdict: Verdict): void {
    const { since, until } = this.#period;
    const kind = kindOf(verdict, again);
    if (kind === null || at < since || at >= until) return;
    this.#counts.add(kind, at);
  }

  #checkpointsOf(
    sink: string,
    partitions: readonly number[],
  ): Promise<ReadonlyMap<number, CommittedCheckpoint>> {
    const { topic, group } = this.#options;
    const ask = () => this.#cluster.group(`${group}.${sink}`, topic).checkpoints(partitions);
    return getOrMake(this.#checkpoints, sink, ask);
  }

  /** The time of the oldest record, if records before it were deleted; 0 if none ever was. */
  async #beginning(): Promise<number> {
    const { topic } = this.#options;
    let latest = 0;
    for (const span of this.#spans.filter(({ from }) => from > 0)) {
      const record = await this.#cluster.first(topic, span);
      latest = Math.max(latest, record?.time ?? Date.now() - (await this.#retention()));
    }
    return latest;
  }

  async #retention(): Promise<number> {
    const settings = await this.#cluster.settings(this.#options.topic).catch(() => null);
    return Math.max(0, Number(settings?.get('retention.ms') ?? 0));
  }
}

/** What a record counts as. One with a known id and other bytes is counted in quarantine; a retry is no new delivery. */
function kindOf(verdict: Verdict, again: string | null): CountKind | null {
  if (again === null) return verdict === 'first' ? 'accepted' : verdict === 'duplicate' ? 'duplicates' : null;
  return verdict === 'first' && again.startsWith(RELEASED) ? 'released' : null;
}

function headOf({ event, handling, again }: RecordedEvent, seq: number): EventHead {
  const { id, type, receivedAt } = event;
  const { only = [] } = handling;
  const mayBeRetry = again !== null;
  return { seq, id, type, receivedAt, only, replayed: false, erased: false, mayBeRetry };
}
