import type { Event } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import type { DeadLetterSummary, EventSummary, Operations } from '../core/operations.ts';
import { selectorOf, type Selection } from './selection.ts';
import { StepMaker, type DeadLetterFacts, type Step, type Unit } from './unit.ts';

/**
 * Runs work on the journal: through the running receiver, or with the journal open during the work only, so that a
 * receiver can start while a replay runs.
 */
export type AskStore = <T>(work: (operations: Operations) => Promise<T>) => Promise<T>;

/** Stores of events in the journal; also the names of the inputs. */
export type StoreName = 'journal' | 'quarantine' | 'dead-letters';

export type StoreUnit = Extract<Unit, { kind: StoreName }>;

/** Events of one page, each with its body. */
const PAGE = 25;

/** The current events of a store. */
export async function listStore(name: StoreName, ask: AskStore): Promise<StoreUnit> {
  if (name !== 'journal') return { kind: name };
  const { firstSeq, lastSeq } = (await ask((operations) => operations.status())).journal;
  return { kind: 'journal', after: firstSeq - 1, upTo: lastSeq };
}

export interface StoreReadOptions {
  readonly selection: Selection;
  readonly ask: AskStore;
  /** Only dead letters that one of these sinks has refused; empty for all. */
  readonly sinks: readonly string[];
  /** Events of erased users are not sent again. */
  readonly isErased: IsErased;
  readonly signal: AbortSignal;
}

/**
 * Reads the journal, quarantine or dead letters, page by page, and changes nothing in them.
 * @param from the last seq or key that was read before
 */
export async function* readStore(
  unit: StoreUnit,
  from: number,
  { selection, ask, sinks, isErased, signal }: StoreReadOptions,
): AsyncGenerator<Step> {
  // An erasure leaves events without ids.
  const select = selectorOf(selection, (event) => event.id === '' || isErased(event));
  const add = (step: StepMaker, summary: EventSummary): void => {
    const where = `${unit.kind}:${summary.key}`;
    // A quarantined event is replayed from quarantine only.
    if (summary.gone === 'quarantined') return step.reach(summary.key);
    if (summary.gone === 'damaged') {
      step.problem(where, 'the record is damaged');
      return step.reach(summary.key);
    }
    if (summary.gone === undefined && summary.body_base64 === undefined) {
      step.problem(where, 'the receiver has not given its body');
      return step.reach(summary.key);
    }
    const event = eventOf(summary);
    const facts = deadLetterFacts(summary);
    const { refusedBy } = facts;
    const isOther = refusedBy !== undefined && sinks.length > 0 && !sinks.includes(refusedBy);
    step.add(summary.key, where, isOther ? 'other' : select(event, event.receivedAt), facts);
  };
  let after = Math.max(from, unit.kind === 'journal' ? unit.after : 0);
  for (;;) {
    signal.throwIfAborted();
    const page = await ask((operations) => pageOf(operations, unit, after));
    const first = page[0]?.key ?? null;
    const step = new StepMaker(after);
    const expected =
      unit.kind === 'journal' && after < unit.upTo ? Math.min(first ?? unit.upTo + 1, unit.upTo + 1) : 0;
    if (expected > after + 1) {
      const gone = expected - after - 1;
      step.problem(unit.kind, `retention removed ${gone} events after ${after} before they could be read`);
    }
    for (const summary of page) {
      if (unit.kind === 'journal' && summary.key > unit.upTo) break;
      add(step, summary);
    }
    yield step.made();
    after = page.at(-1)?.key ?? after;
    if (page.length === 0 || (unit.kind === 'journal' && after >= unit.upTo)) return;
  }
}

function pageOf(
  operations: Operations,
  { kind }: StoreUnit,
  after: number,
): Promise<readonly EventSummary[]> {
  if (kind === 'journal') return operations.listEvents({ after });
  const page = { after, limit: PAGE };
  return kind === 'quarantine'
    ? operations.listQuarantine(page, true)
    : operations.listDeadLetters(page, true);
}

function deadLetterFacts(summary: EventSummary | DeadLetterSummary): DeadLetterFacts {
  if (!('sink' in summary)) return {};
  const { sink, redactions } = summary;
  return { refusedBy: sink, ...(redactions === undefined ? {} : { redactions }) };
}

function eventOf(summary: EventSummary): Event {
  return {
    id: summary.id,
    source: summary.source ?? 'journal',
    type: summary.event_type,
    team: summary.team_id,
    user: summary.user_id,
    clientUser: summary.client_user_id,
    receivedAt: Date.parse(summary.received_at),
    headers: summary.headers ?? {},
    body: Buffer.from(summary.body_base64 ?? '', 'base64'),
  };
}
