import type { Cluster } from './cluster.ts';
import { PartitionWindow, RETRIED, type WindowOptions } from './window.ts';

/** Milliseconds by which a record can seem older than its event: clocks are set back now and then. */
const SLACK = 60_000;

/** The events of the topic, each once, for a replay. Repetitions, and what is in quarantine, are left out. */
export class SharedLog {
  readonly #options: WindowOptions;
  readonly #cluster: Cluster;

  constructor(options: WindowOptions, cluster: Cluster) {
    this.#options = options;
    this.#cluster = cluster;
  }

  /**
   * What the topic has now, by partition; numbers are offsets plus one.
   * @param since milliseconds since the epoch: leaves out what was received before, as far as it lies in front
   */
  async spans(since: number | null) {
    const from = since === null ? 'earliest' : since - SLACK;
    const spans = await this.#cluster.spans(this.#options.topic, from);
    return spans.flatMap(({ partition, from: after, to: upTo }) =>
      after < 0 || after >= upTo ? [] : [{ partition, after, upTo }],
    );
  }

  async *pages(
    partition: number,
    { after, upTo }: { readonly after: number; readonly upTo: number },
    signal: AbortSignal,
  ) {
    const { topic } = this.#options;
    const window = new PartitionWindow(partition, this.#options);
    // Repetitions are found by the records before `after`.
    await window.cover(this.#cluster, after, signal);
    let from = after;
    for await (const page of this.#cluster.pages(topic, { partition, from, to: upTo }, signal)) {
      const found = page.records.flatMap((record) => {
        const { recorded, verdict } = window.judge(record);
        if (recorded === null || verdict !== 'first') return [];
        // The event of a retried dead letter came before.
        if (recorded.again?.startsWith(RETRIED) === true) return [];
        const { event, handling } = recorded;
        const { without } = handling;
        return [{ at: record.offset + 1, event, ...(without === undefined ? {} : { without }) }];
      });
      const end = Math.min(page.next, upTo);
      yield { upTo: end, removed: page.from - from, found };
      from = end;
    }
    if (from < upTo) yield { upTo, removed: upTo - from, found: [] };
  }
}
