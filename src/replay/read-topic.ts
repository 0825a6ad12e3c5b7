import type { Event, Handling } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import { selectorOf, type Selection } from './selection.ts';
import { parseTarget } from '../core/route.ts';
import { StepMaker, type DeadLetterFacts, type Step, type Unit } from './unit.ts';

/** The journal of a fleet: partitions whose records have numbers from 1. */
export interface TopicLog {
  spans(since: number | null): Promise<readonly Span[]>;
  /** Events after `after`, up to and including `upTo`: each once, in order. */
  pages(partition: number, range: Omit<Span, 'partition'>, signal: AbortSignal): AsyncIterable<TopicPage>;
}

interface Span {
  readonly partition: number;
  readonly after: number;
  readonly upTo: number;
}

export interface TopicPage {
  /** Number of the last record read. */
  readonly upTo: number;
  /** Records that the brokers deleted before they were read. */
  readonly removed: number;
  readonly found: readonly TopicEvent[];
}

export interface TopicEvent {
  readonly at: number;
  readonly event: Event;
  /** Redactions for each of its targets when it was received. */
  readonly without?: Handling['without'];
}

export type TopicUnit = Extract<Unit, { kind: 'topic' }>;

export async function* listTopic(log: TopicLog, { since }: Selection): AsyncGenerator<TopicUnit> {
  for (const span of await log.spans(since)) yield { kind: 'topic', ...span };
}

export interface TopicReadOptions {
  readonly selection: Selection;
  readonly isErased: IsErased;
  /** Sinks that the replay names. */
  readonly sinks: readonly string[];
  readonly signal: AbortSignal;
}

/** @param from number of the last record that was read before */
export async function* readTopic(
  log: TopicLog,
  { partition, after, upTo }: TopicUnit,
  from: number,
  { selection, isErased, sinks, signal }: TopicReadOptions,
): AsyncGenerator<Step> {
  const select = selectorOf(selection, isErased);
  const range = { after: Math.max(from, after), upTo };
  for await (const page of log.pages(partition, range, signal)) {
    const step = new StepMaker(range.after);
    const where = `journal:${partition}`;
    if (page.removed > 0)
      step.problem(where, `the brokers have deleted ${page.removed} records before they could be read`);
    for (const { at, event, without } of page.found) {
      step.add(at, `${where}/${at - 1}`, select(event, event.receivedAt), redactionsOf(without, sinks));
    }
    step.reach(page.upTo);
    yield step.made();
  }
}

function redactionsOf(without: Handling['without'], sinks: readonly string[]): DeadLetterFacts {
  const redactions = Object.entries(without ?? {}).flatMap(([target, each]) =>
    sinks.includes(parseTarget(target).sink) ? each : [],
  );
  return redactions.length === 0 ? {} : { redactions };
}
