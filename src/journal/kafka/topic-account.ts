import { MillraceError } from '../../core/errors.ts';
import type { IsErased } from '../../core/ingest.ts';
import type { CountKind, EventHead, HourCount, JournalAccount } from '../../core/journal.ts';
import { parseTarget } from '../../core/route.ts';
import { NO_ROUTES } from '../../core/route-record.ts';
import type { Cluster, Read, Span } from './cluster.ts';
import { decodeAhead } from './commit-text.ts';
import { keptOf, type Kept } from './record.ts';
import { isSettledIn, type HandedOver } from './settled-offsets.ts';
import { PartitionWindow, RELEASED, type WindowOptions } from './window.ts';

export interface LedgerOptions extends WindowOptions {
  readonly group: string;
  readonly isErased: IsErased;
}

const HOUR = 3_600_000;
const NOT_COUNTED =
  'counted from the topic: what was dropped from quarantine, or came from users who were erased, is not in it';

/** What of one partition is counted; `base` offsets of other partitions come before it. */
interface Counted extends Span {
  readonly base: number;
}

/**
 * The topic of events as a ledger, for one reconciliation: partition after partition, with what each record is by the order of
 * the log, and for which sinks it waits. All of the moment at which `account` was asked.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #cluster: Cluster;
  readonly #progress = new Map<string, ReadonlyMap<number, HandedOver>>();
  /** Filled while the heads are read: the log is read once. */
  readonly #counts: HourCount[] = [];
  readonly #places = new Map<string, number>();
  #spans: readonly Counted[] = [];
  #lastSeq = 0;
  #window = { since: 0, until: 0 };
  #pages: AsyncGenerator<readonly EventHead[]> | null = null;

  constructor(options: LedgerOptions, cluster: Cluster) {
    this.#options = options;
    this.#cluster = cluster;
  }

  /**
   * @param sinks those that are configured
   * @throws MillraceError usage when the brokers have deleted what came after `since`
   */
  async account(since: number, until: number, sinks: readonly string[]): Promise<JournalAccount> {
    const { topic } = this.#options;
    const { leaders } = await this.#cluster.topic(topic, true);
    const all = [...leaders.keys()];
    // Before the ends: what is confirmed lies before them.
    for (const sink of sinks) await this.#progressOf(sink, all);
    let base = 0;
    this.#spans = (await this.#cluster.spans(topic)).map((span) => {
      const counted = { ...span, base };
      base += span.to - span.from;
      return counted;
    });
    this.#lastSeq = base;
    this.#window = { since, until };
    const begin = await this.#beginning();
    if (since < begin)
      throw new MillraceError(
        'usage',
        `the brokers have deleted events of before ${new Date(begin).toISOString()}: --since must not be before it`,
      );
    return {
      firstSeq: 1,
      lastSeq: base,
      isSparse: true,
      cursors: [],
      counts: this.#counts,
      countedSince: null,
      started: [],
      dropped: [],
      routes: NO_ROUTES,
      notes: [NOT_COUNTED],
    };
  }

  /** The next page, in the order of their seqs; after the last of `account`, what has come since. */
  async heads(after: number): Promise<readonly EventHead[]> {
    if (after === 0) this.#pages = this.#read();
    if (after >= this.#lastSeq) this.#pages = this.#late();
    for (;;) {
      const next = await this.#pages?.next();
      if (next === undefined || next.done === true) return [];
      const page = next.value.filter(({ seq }) => seq > after);
      if (page.length > 0) return page;
    }
  }

  async *#read(): AsyncGenerator<readonly EventHead[]> {
    const { topic } = this.#options;
    const all = this.#spans.map(({ partition }) => partition);
    for (const span of this.#spans) {
      const { partition, base, from } = span;
      const window = new PartitionWindow(partition, this.#options);
      for await (const page of this.#cluster.pages(topic, span)) {
        const records = page.records.flatMap((record) => {
          const kept = keptOf(record);
          return kept !== null && this.#isEvent(window, record, kept) ? [[record, kept] as const] : [];
        });
        for (const sink of new Set(records.flatMap(([, { handling }]) => sinksOf(handling.only))))
          await this.#progressOf(sink, all);
        yield records.map(([{ offset }, kept]) => ({
          ...headOf(kept, base + offset - from + 1),
          erased: this.#options.isErased(kept.event),
          waits: this.#waiting(kept, partition, offset),
        }));
      }
    }
  }

  /** What came after `account`: only that it did is of interest. */
  async *#late(): AsyncGenerator<readonly EventHead[]> {
    const { topic } = this.#options;
    const partitions = this.#spans.map(({ partition }) => partition);
    const ends = await this.#cluster.offsets(topic, partitions, 'latest');
    let seq = this.#lastSeq;
    for (const { partition, to: from } of this.#spans) {
      const span = { partition, from, to: ends.get(partition) ?? from };
      for await (const { records } of this.#cluster.pages(topic, span))
        yield records.flatMap((record) => {
          const kept = keptOf(record);
          return kept === null ? [] : [headOf(kept, (seq += 1))];
        });
    }
  }

  /** Notes and counts a record. @returns whether it is no repetition of one */
  #isEvent(window: PartitionWindow, record: Read, kept: Kept): boolean {
    const { verdict } = window.note(kept, record);
    const { since, until } = this.#window;
    const { receivedAt: at } = kept.event;
    // What has a known id and other bytes is in quarantine, and counted there.
    const kind =
      verdict === 'duplicate' && kept.again === null
        ? 'duplicates'
        : verdict !== 'first'
          ? null
          : kept.again === null
            ? 'accepted'
            : kept.again.startsWith(RELEASED)
              ? 'released'
              : null;
    if (kind !== null && at >= since && at < until) this.#count(at - (at % HOUR), kind);
    return verdict === 'first';
  }

  #count(hour: number, kind: CountKind): void {
    const key = `${kind} ${hour}`;
    const place = this.#places.get(key) ?? this.#counts.push({ hour, kind, n: 0 }) - 1;
    this.#places.set(key, place);
    this.#counts[place] = { hour, kind, n: (this.#counts[place]?.n ?? 0) + 1 };
  }

  async #progressOf(sink: string, partitions: readonly number[]): Promise<void> {
    if (this.#progress.has(sink)) return;
    const { topic, group } = this.#options;
    const { groups } = this.#cluster;
    const name = `${group}.${sink}`;
    const committed = await groups.committed(name, topic, partitions);
    const progress = Array.from(
      committed,
      ([partition, { offset, text }]) => [partition, decodeAhead(offset, text)] as const,
    );
    this.#progress.set(sink, new Map(progress));
  }

  /** The sinks that have it still to have somewhere. */
  #waiting({ handling: { only = [] } }: Kept, partition: number, offset: number): string[] {
    const open = only.map(parseTarget).filter(({ sink, destination }) => {
      const progress = this.#progress.get(sink)?.get(partition);
      return progress === undefined || !isSettledIn(progress, offset, destination);
    });
    return [...new Set(open.map(({ sink }) => sink))];
  }

  /** Since when nothing has been deleted; 0 where nothing ever was. */
  async #beginning(): Promise<number> {
    const { topic } = this.#options;
    let latest = 0;
    for (const { partition, from, to } of this.#spans) {
      if (from === 0) continue;
      const record = from < to ? await this.#cluster.recordAt(topic, partition, from) : null;
      latest = Math.max(latest, record?.time ?? Date.now() - (await this.#retention()));
    }
    return latest;
  }

  async #retention(): Promise<number> {
    const settings = await this.#cluster.settings(this.#options.topic).catch(() => null);
    return Math.max(0, Number(settings?.get('retention.ms') ?? 0));
  }
}

function headOf({ event, handling, again }: Kept, seq: number): EventHead {
  const { id, type, receivedAt } = event;
  const only = handling.only ?? [];
  return { seq, id, type, receivedAt, only, replayed: false, erased: false, isPutBack: again !== null };
}

function sinksOf(only: readonly string[] | undefined): string[] {
  return [...new Set(only?.map((target) => parseTarget(target).sink))];
}
