import { chainOf, chainPrefix, parseSegmentKey, type Segment } from './segments.ts';
import { readWhole } from '../core/objects.ts';
import type { SinkLog } from '../core/sink.ts';
import type { ObjectStore, StoredObject } from '../core/storage.ts';
import { linesOf, type Pending } from './kept-segments.ts';

export type StoredSegment = Segment & Pick<StoredObject, 'key' | 'bytes'>;

export interface SegmentsOptions {
  readonly store: ObjectStore;
  /** Names the chain: one process at a time may use it. */
  readonly writer: string;
  readonly log: SinkLog;
  /** Cancels requests to the store. */
  readonly signal: AbortSignal;
}

/** The stored segments of one writer's chain. */
export class ChainSegments {
  readonly #options: SegmentsOptions;

  constructor(options: SegmentsOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly StoredSegment[]> {
    const { store, writer, signal, log } = this.#options;
    const found: StoredSegment[] = [];
    for await (const { key, bytes } of store.list(chainPrefix(writer), signal)) {
      const segment = parseSegmentKey(key);
      if (segment !== null) found.push({ ...segment, key, bytes });
    }
    const { chain, contained, gaps } = chainOf(found);
    for (const { after, before } of gaps)
      log.error({ key: before.key, after }, 'objects of the manifest are missing before this one');
    for (const segment of contained) await this.#removeJoined(segment, chain);
    return chain;
  }

  /** Whether the chain has these lines in their place, perhaps joined with others. */
  async hold({ segment, bytes }: Pending): Promise<boolean> {
    const lines: string[] = [];
    for (const each of await this.list())
      if (each.first <= segment.last && each.last >= segment.first)
        for (const [at, line] of (await this.lines(each)).entries())
          if (each.first + at >= segment.first && each.first + at <= segment.last) lines.push(line);
    return lines.join('\n') === linesOf(bytes).join('\n');
  }

  async lines(segment: StoredSegment): Promise<string[]> {
    return linesOf(await this.read(segment));
  }

  read({ key }: StoredSegment): Promise<Buffer> {
    return readWhole(this.#options.store, key, this.#options.signal);
  }

  /** Removes a joined segment that a killed process has left. */
  async #removeJoined(segment: StoredSegment, chain: readonly StoredSegment[]): Promise<void> {
    const { store, signal, log } = this.#options;
    const { key, first, last } = segment;
    const large = chain.find((each) => each.first <= first && each.last >= last);
    const lines = large === undefined ? [] : (await this.lines(large)).slice(first - large.first);
    const same = (await this.lines(segment)).every((line, at) => line === lines[at]);
    if (same) await store.delete(key, undefined, signal);
    // Two processes have used copies of one writer's folder. Both segments stay.
    else log.error({ key }, 'the lines of this object are not in the one that replaces it');
  }
}
