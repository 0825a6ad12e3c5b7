import type { Event, Handling } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import { takerOf, type Selection } from './selection.ts';
import { parseTarget } from '../core/route.ts';
import { type Letter, StepMaker, type Step, type Unit } from './unit.ts';

/** A journal that a fleet shares, as a replay reads it: partitions, with numbers from 1. */
export interface TopicLog {
  spans(since: number | null): Promise<readonly Span[]>;
  /** What comes after `after`, up to and including `upTo`: each event once, in order. */
  pages(partition: number, range: Omit<Span, 'partition'>, signal: AbortSignal): AsyncIterable<TopicPage>;
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
  readonly found: readonly TopicEvent[];
}

export interface TopicEvent {
  readonly at: number;
  readonly event: Event;
  /** What it was to go without to each of its targets, when it came. */
  readonly without?: Handling['without'];
}

export type TopicUnit = Extract<Unit, { kind: 'topic' }>;

export async function* listTopic(log: TopicLog, { since }: Selection): AsyncGenerator<TopicUnit> {
  for (const span of await log.spans(since)) yield { kind: 'topic', ...span };
}

export interface TopicReading {
  readonly selection: Selection;
  readonly isErased: IsErased;
  /** Those that are named for what is read. */
  readonly sinks: readonly string[];
  readonly signal: AbortSignal;
}

/** @param from the number that everything has been read up to */
export async function* readTopic(
  log: TopicLog,
  { partition, after, upTo }: TopicUnit,
  from: number,
  { selection, isErased, sinks, signal }: TopicReading,
): AsyncGenerator<Step> {
  const take = takerOf(selection, isErased);
  const range = { after: Math.max(from, after), upTo };
  for await (const page of log.pages(partition, range, signal)) {
    const step = new StepMaker(range.after);
    const where = `journal:${partition}`;
    if (page.removed > 0)
      step.problem(where, `the brokers have deleted ${page.removed} records before they could be read`);
    for (const { at, event, without } of page.found) {
      step.take(at, `${where}/${at - 1}`, take(event, event.receivedAt), letterOf(without, sinks));
    }
    step.reach(page.upTo);
    yield step.made();
  }
}

function letterOf(without: Handling['without'], sinks: readonly string[]): Letter {
  const redactions = Object.entries(without ?? {}).flatMap(([target, each]) =>
    sinks.includes(parseTarget(target).sink) ? each : [],
  );
  return redactions.length === 0 ? {} : { redactions };
}
