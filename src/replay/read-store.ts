import type { Event } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import type { Selection as Letters } from '../core/journal.ts';
import type { DeadLetterSummary, EventSummary, Operations } from '../core/operations.ts';
import { takerOf, type Selection, type Take } from './selection.ts';
import { StepMaker, type Letter, type Step, type Unit } from './unit.ts';

/**
 * Runs work on the journal: through the receiver that holds it, or with the journal open for just as long. A page at a
 * time, so that a receiver can start while a replay runs.
 */
export type AskStore = <T>(work: (operations: Operations) => Promise<T>) => Promise<T>;

/** What a store can hold; the names of the inputs too. */
export type StoreName = 'journal' | 'quarantine' | 'dead-letters';

export type StoreUnit = Extract<Unit, { kind: StoreName }>;

/** Letters of one page; they can be as large as bodies can. */
const PAGE = 25;

/** What a store holds now: what comes later is no part of the replay. */
export async function listStore(name: StoreName, ask: AskStore): Promise<StoreUnit> {
  if (name !== 'journal') return { kind: name };
  const { firstSeq, lastSeq } = (await ask((operations) => operations.status())).journal;
  return { kind: 'journal', after: firstSeq - 1, upTo: lastSeq };
}

export interface StoreReading {
  readonly selection: Selection;
  readonly ask: AskStore;
  /** Of dead letters: only those that one of these sinks has refused; empty takes all. */
  readonly sinks: readonly string[];
  /** Events of erased users are not sent again; what an erasure left of one has no id. */
  readonly isErased?: IsErased | undefined;
}

/** Reads the journal, quarantine or dead letters, page by page, and changes nothing in them. */
export class StoreReader {
  readonly #options: StoreReading;
  readonly #select: Take;

  constructor(options: StoreReading) {
    this.#options = options;
    const { selection, isErased } = options;
    this.#select = takerOf(selection, (event) => event.id === '' || isErased?.(event) === true);
  }

  /** @param from the seq or key that everything has been read up to */
  async *read(unit: StoreUnit, from: number, signal?: AbortSignal): AsyncGenerator<Step> {
    let after = Math.max(from, unit.kind === 'journal' ? unit.after : 0);
    for (;;) {
      signal?.throwIfAborted();
      const page = await this.#page(unit, after);
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
        this.#take(step, unit, summary);
      }
      yield step.made();
      after = page.at(-1)?.key ?? after;
      if (page.length === 0 || (unit.kind === 'journal' && after >= unit.upTo)) return;
    }
  }

  #page(unit: StoreUnit, after: number): Promise<readonly EventSummary[]> {
    const selection: Letters = { after, limit: PAGE };
    return this.#options.ask((operations): Promise<readonly EventSummary[]> => {
      if (unit.kind === 'journal') return operations.listEvents({ after });
      if (unit.kind === 'quarantine') return operations.listQuarantine(selection, true);
      return operations.listDeadLetters(selection, true);
    });
  }

  #take(step: StepMaker, { kind }: StoreUnit, summary: EventSummary): void {
    const where = `${kind}:${summary.key}`;
    // What is in quarantine is replayed from there.
    if (summary.gone === 'quarantined') return step.reach(summary.key);
    if (summary.gone === 'damaged') {
      step.problem(where, 'the record is damaged');
      return step.reach(summary.key);
    }
    const event = eventOf(summary);
    const letter = letterOf(summary);
    const { refusedBy } = letter;
    const { sinks } = this.#options;
    const isOther = refusedBy !== undefined && sinks.length > 0 && !sinks.includes(refusedBy);
    const taken = isOther ? 'passed' : this.#select(event, event.receivedAt);
    step.take(summary.key, where, taken, letter);
  }
}

function letterOf(summary: EventSummary | DeadLetterSummary): Letter {
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
