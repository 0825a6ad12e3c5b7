import type { Event } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import { compileSelection, type Selection } from './selection.ts';
import { takerOf } from './take.ts';
import { StepMaker, type Step, type Unit } from './unit.ts';

/** A journal that a fleet shares, as a replay reads it: partitions, with numbers from 1. */
export interface TopicLog {
  spans(since: number | null): Promise<readonly Span[]>;
  /** What comes after `after`, up to and including `upTo`: each event once, in order. */
  pages(
    partition: number,
    range: { readonly after: number; readonly upTo: number },
    signal: AbortSignal,
  ): AsyncIterable<TopicPage>;
}

interface Span {
  readonly partition: number;
  readonly after: number;
  readonly upTo: number;
}

export interface TopicPage {
  /** All up to here has been read. */
  readonly upTo: number;
  /** Records that the brokers had deleted before they could be read. */
  readonly removed: number;
  /** `erased`: nobody can open it any more. */
  readonly found: readonly { readonly at: number; readonly event: Event | 'erased' }[];
}

export type TopicUnit = Extract<Unit, { kind: 'topic' }>;

export async function* listTopic(log: TopicLog, { since }: Selection): AsyncGenerator<TopicUnit> {
  for (const span of await log.spans(since)) yield { kind: 'topic', ...span };
}

/** @param from the number that everything has been read up to */
export async function* readTopic(
  log: TopicLog,
  { partition, after, upTo }: TopicUnit,
  from: number,
  { selection, isErased, signal }: { selection: Selection; isErased: IsErased; signal: AbortSignal },
): AsyncGenerator<Step> {
  const take = takerOf(compileSelection(selection), isErased);
  const range = { after: Math.max(from, after), upTo };
  for await (const page of log.pages(partition, range, signal)) {
    const step = new StepMaker(range.after);
    const where = `journal:${partition}`;
    if (page.removed > 0)
      step.problem(where, `the brokers have deleted ${page.removed} records before they could be read`);
    for (const { at, event } of page.found) {
      const taken = event === 'erased' ? event : take(event, event.receivedAt);
      step.take(at, `${where}/${at - 1}`, taken);
    }
    step.reach(page.upTo);
    yield step.made();
  }
}
