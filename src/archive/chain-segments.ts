import { chainOf, chainPrefix, parseSegmentKey, type Segment } from '../core/archive-segments.ts';
import { readWhole } from '../core/objects.ts';
import type { SinkLog } from '../core/sink.ts';
import type { ObjectStore, StoredObject } from '../core/storage.ts';
import { linesOf, type Pending } from './kept-segments.ts';

export type StoredSegment = Segment & Pick<StoredObject, 'key' | 'bytes'>;

interface ChainPlace {
  readonly store: ObjectStore;
  readonly writer: string;
  readonly log: SinkLog;
  /** Ends what is on its way from the store. */
  readonly signal: AbortSignal;
}

/** The objects in a store that one writer's chain of a manifest consists of. */
export class ChainSegments {
  readonly #place: ChainPlace;

  constructor(place: ChainPlace) {
    this.#place = place;
  }

  async list(): Promise<readonly StoredSegment[]> {
    const { store, writer, signal, log } = this.#place;
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

  /** Whether the chain has these lines where they were to be: put before a kill, and perhaps joined with others since. */
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
    return readWhole(this.#place.store, key, this.#place.signal);
  }

  /** What a process has joined and was killed before it removed it. */
  async #removeJoined(segment: StoredSegment, chain: readonly StoredSegment[]): Promise<void> {
    const { store, signal, log } = this.#place;
    const { key, first, last } = segment;
    const large = chain.find((each) => each.first <= first && each.last >= last);
    const lines = large === undefined ? [] : (await this.lines(large)).slice(first - large.first);
    const same = (await this.lines(segment)).every((line, at) => line === lines[at]);
    if (same) await store.delete(key, undefined, signal);
    // Two copies of one writer's folder were used at once. Nothing of either is removed.
    else log.error({ key }, 'the lines of this object are not in the one that takes its place');
  }
}
