import type { Event, Handling } from '../../core/event.ts';
import type { Cluster } from './cluster.ts';
import { keptOf } from './record.ts';
import { PartitionWindow, RETRIED, type WindowOptions } from './window.ts';

interface Found {
  readonly at: number;
  readonly event: Event;
  readonly without?: Handling['without'];
}

/** Clocks are set back now and then: milliseconds by which a record can say that it is older than its event. */
const SLACK = 60_000;

/** The topic of events, for who reads each event once: repetitions, and what is in quarantine, are passed over. */
export class SharedLog {
  readonly #options: WindowOptions;
  readonly #cluster: Cluster;

  constructor(options: WindowOptions, cluster: Cluster) {
    this.#options = options;
    this.#cluster = cluster;
  }

  /**
   * What there is now, by partition; numbers are offsets plus one.
   * @param since milliseconds since the epoch: what was received before is left out, as far as whole stretches of it are
   */
  async spans(
    since: number | null,
  ): Promise<readonly { readonly partition: number; readonly after: number; readonly upTo: number }[]> {
    const { topic } = this.#options;
    const from = since === null ? 'earliest' : since - SLACK;
    const spans = await this.#cluster.spans(topic, from);
    return spans.flatMap(({ partition, from: after, to: upTo }) =>
      after < 0 || after >= upTo ? [] : [{ partition, after, upTo }],
    );
  }

  async *pages(
    partition: number,
    { after, upTo }: { readonly after: number; readonly upTo: number },
    signal: AbortSignal,
  ): AsyncGenerator<{
    readonly upTo: number;
    readonly removed: number;
    readonly found: readonly Found[];
  }> {
    const { topic } = this.#options;
    const window = new PartitionWindow(partition, this.#options);
    // What came before says what of it are repetitions, wherever the reading begins.
    await window.cover(this.#cluster, after, signal);
    let from = after;
    for await (const page of this.#cluster.pages(topic, { partition, from, to: upTo }, signal)) {
      const found: Found[] = [];
      for (const record of page.records) {
        const kept = keptOf(record);
        if (kept === null || window.note(kept, record).verdict !== 'first') continue;
        // A dead letter that is sent once more stands behind the event that it was made of.
        if (kept.again?.startsWith(RETRIED) === true) continue;
        const { event, handling } = kept;
        const { without } = handling;
        found.push({ at: record.offset + 1, event, ...(without === undefined ? {} : { without }) });
      }
      const end = Math.min(page.next, upTo);
      yield { upTo: end, removed: page.from - from, found };
      from = end;
    }
    if (from < upTo) yield { upTo, removed: upTo - from, found: [] };
  }
}
