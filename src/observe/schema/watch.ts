import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { Event, JournalEvent } from '../../core/event.ts';
import type { AppendResult, Ingest, IngestObserver, InvalidReason } from '../../core/ingest.ts';
import type { EventStore } from '../../core/journal.ts';
import type { SchemaReport } from '../../core/schema.ts';
import type { SinkLog } from '../../core/sink.ts';
import { restoreFrom, textOf } from './kept.ts';
import { Looking } from './looking.ts';
import { type FirstSeen, SchemaMemory } from './memory.ts';
import { changeEvent, type EnvelopeNames, isChangeEvent, newsOf, type TypeNews } from './news.ts';
import { reportOf } from './report.ts';

/** What the schema memory has done since the start. */
export interface SchemaFigures {
  readonly firstSeen: { readonly types: number; readonly fields: number; readonly kinds: number };
  /** Events that were looked at, and that only were counted. */
  readonly looked: number;
  readonly passed: number;
  /** Remembered now. */
  readonly types: number;
  readonly fields: number;
  readonly isFull: boolean;
}

/** Its place among the journal's checkpoints, and how far it has looked. */
export const MEMORY_KEY = 'schema';
const SEQ_KEY = 'schema.seq';
/** What is new gathers for so long before it is told, milliseconds. */
const GATHERING = 200;
/** How often it is noted how far it has looked, and times and counts, milliseconds. */
const SEQ_EVERY = 2000;
const COUNTS_EVERY = 600_000;
/** Saving takes no more than this share of the time. */
const SAVING = 0.01;
/** What could not be sent as an event yet. */
const MOST_UNSENT = 1000;
/** Events that came in before a crash and were not looked at: the newest of them are, at the next start. */
const MOST_MISSED = 20_000;
const PAGE = { count: 100, bytes: 2 ** 20 };
/** Milliseconds between two pages. */
const BETWEEN = 50;

export interface SchemaSettings {
  readonly enabled: boolean;
  /** `sink` or `sink:destination`; null for nobody. */
  readonly alertTo: string | null;
}

export interface WatchOptions {
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly store: Pick<Journal, 'checkpoints' | 'lastSeq' | 'read'>;
  /** Where it says what is new. */
  readonly ingest: () => Ingest;
  /** Of now. */
  readonly settings: () => SchemaSettings;
  /** What an event's members are called. */
  readonly envelope: () => EnvelopeNames;
}

/**
 * Remembers what accepted events look like, and tells what was never there before: in the log, as an event, in the journal.
 *
 * What is new is told first and kept then, so after a crash it may be told once more, and is not forgotten. While there is time
 * each event is looked at when it is accepted. In a flood some of each type are; the rest are counted.
 */
export class SchemaWatch implements IngestObserver {
  readonly #options: WatchOptions;
  readonly #observer: IngestObserver;
  readonly #memory: SchemaMemory;
  #news: FirstSeen[] = [];
  #firstSeen = { types: 0, fields: 0, kinds: 0 };
  readonly #looking: Looking;
  #seq = 0;
  #savedSeq = 0;
  /** Milliseconds, when all was saved last, and before which it is not saved again. */
  #savedAt: number;
  #notBefore = 0;
  /** There is something new, or only other counts and times, that is not saved. */
  #isDirty = false;
  #hasCounts = false;
  /** Where it looks at what came in before the start; null when that is done. */
  #behind: number | null = null;
  #unsent: TypeNews[] = [];
  #toldFull = false;
  #saving: Promise<void> = Promise.resolve();
  #stopTimer: (() => void) | null = null;
  #stopLate: (() => void) | null = null;
  #isStopped = false;

  private constructor(observer: IngestObserver, options: WatchOptions) {
    this.#observer = observer;
    this.#options = options;
    this.#memory = new SchemaMemory((first) => this.#note(first));
    this.#looking = new Looking(this.#memory, options.clock);
    this.#savedAt = options.clock.monotonic();
  }

  /**
   * What the journal remembers; begins to look at what came in since.
   * @param observer told of everything, before it is looked at here
   */
  static async open(observer: IngestObserver, options: WatchOptions): Promise<SchemaWatch> {
    const watch = new SchemaWatch(observer, options);
    const { checkpoints, lastSeq } = options.store;
    const text = await checkpoints.load(MEMORY_KEY);
    const noted = await checkpoints.load(SEQ_KEY);
    // Otherwise the first events of all would not be known to be missing after a crash.
    if (noted === null) await checkpoints.save(SEQ_KEY, String(lastSeq));
    const seq = Math.min(Number(noted ?? lastSeq), lastSeq);
    try {
      if (text !== null) restoreFrom(text, watch.#memory);
    } catch (error) {
      options.log.warn({ error: messageOf(error) }, 'the schema memory cannot be read, and begins anew');
    }
    watch.#toldFull = watch.#isFull;
    watch.#seq = seq;
    watch.#savedSeq = seq;
    if (options.settings().enabled) watch.#lookBack(Math.max(seq, lastSeq - MOST_MISSED), lastSeq);
    return watch;
  }

  stored(event: Event, result: AppendResult): void {
    this.#observer.stored(event, result);
    if (result.status !== 'accepted') return;
    this.#see(event, result.seq);
  }

  storedInvalid(event: Event, reasons: readonly InvalidReason[], result: AppendResult): void {
    this.#observer.storedInvalid(event, reasons, result);
  }

  get figures(): SchemaFigures {
    const { types, fields } = this.#memory;
    return {
      firstSeen: this.#firstSeen,
      looked: this.#looking.looked,
      passed: this.#looking.passed,
      types: types.size,
      fields,
      isFull: this.#isFull,
    };
  }

  report(): SchemaReport {
    return reportOf(this.#memory, this.#options.settings().enabled);
  }

  /** Tells and keeps all that is new. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopLate?.();
    this.#stopTimer?.();
    await this.#flush(true);
  }

  get #isFull(): boolean {
    return this.#memory.isFull || [...this.#memory.types.values()].some(({ isFull }) => isFull);
  }

  /** Never throws: whoever calls has an event to answer for. */
  #see(event: Event, seq: number): void {
    if (isChangeEvent(event) || !this.#options.settings().enabled) return;
    try {
      if (seq > this.#seq) this.#seq = seq;
      const memory = this.#memory.count(event.type, event.receivedAt, event);
      this.#hasCounts = true;
      if (memory !== null) this.#looking.at(memory, event);
      this.#soon(SEQ_EVERY);
    } catch (error) {
      this.#options.log.error({ error: messageOf(error) }, 'an event could not be looked at');
    }
  }

  /** Looks at what was accepted before the last end of the program, a page at a time. */
  #lookBack(after: number, upTo: number): void {
    this.#behind = after >= upTo ? null : after;
    if (this.#behind === null || this.#isStopped) return;
    const { store, clock, log } = this.#options;
    this.#stopLate = clock.after(BETWEEN, () => {
      store.read(after, PAGE).then(
        (page) => {
          for (const event of page) if (event.seq <= upTo && !isLeft(event)) this.#see(event, event.seq);
          this.#lookBack(page.at(-1)?.seq ?? upTo, upTo);
        },
        (error: unknown) =>
          log.warn(
            { error: messageOf(error) },
            'earlier events could not be looked at for the schema memory',
          ),
      );
    });
  }

  #note(first: FirstSeen): void {
    this.#news.push(first);
    if (this.#news.length === 1) {
      this.#stopTimer?.();
      this.#stopTimer = null;
    }
    this.#soon(GATHERING);
  }

  #soon(ms: number): void {
    if (this.#isStopped || this.#stopTimer !== null) return;
    this.#stopTimer = this.#options.clock.after(ms, () => {
      this.#stopTimer = null;
      void this.#flush(false);
    });
  }

  /** One after the other. */
  #flush(isLast: boolean): Promise<void> {
    this.#saving = this.#saving.then(() => this.#tellAndSave(isLast));
    return this.#saving;
  }

  async #tellAndSave(isLast: boolean): Promise<void> {
    const news = newsOf(this.#news);
    this.#news = [];
    for (const each of news) this.#tell(each);
    this.#tellFull();
    if (news.length > 0) this.#isDirty = true;
    if (this.#options.settings().alertTo === null) this.#unsent = [];
    else this.#unsent = [...this.#unsent, ...news].slice(-MOST_UNSENT);
    try {
      for (let next = this.#unsent[0]; next !== undefined; next = this.#unsent[0]) {
        await this.#send(next);
        this.#unsent.shift();
      }
      await this.#save(isLast);
    } catch (error) {
      // Full, for now; what has gone wrong for good ends the process.
      this.#isDirty = true;
      this.#options.log.warn(
        { error: messageOf(error) },
        'the schema memory could not be saved; it is tried again',
      );
      this.#soon(SEQ_EVERY);
    }
  }

  async #save(isLast: boolean): Promise<void> {
    const { store, clock } = this.#options;
    const begun = clock.monotonic();
    const seq = this.#behind ?? this.#seq;
    const isDue = this.#isDirty || (this.#hasCounts && begun - this.#savedAt > COUNTS_EVERY);
    if (isLast ? this.#isDirty || this.#hasCounts : isDue && begun >= this.#notBefore) {
      this.#isDirty = false;
      this.#hasCounts = false;
      this.#savedAt = begun;
      const text = textOf(this.#memory);
      // A large memory is written less often.
      this.#notBefore = begun + (clock.monotonic() - begun) / SAVING;
      await store.checkpoints.save(MEMORY_KEY, text);
    } else if (isDue) {
      // How far it has looked is noted with what it saw.
      this.#soon(this.#notBefore - begun);
      return;
    }
    if (seq === this.#savedSeq) return;
    await store.checkpoints.save(SEQ_KEY, String(seq));
    this.#savedSeq = seq;
  }

  #tell({ type, isNew, isSettled, fields, more, kinds, known }: TypeNews): void {
    const { log } = this.#options;
    this.#firstSeen.types += isNew ? 1 : 0;
    this.#firstSeen.fields += isNew ? 0 : fields.length + more;
    this.#firstSeen.kinds += kinds.length;
    const detail = {
      type,
      ...(fields.length === 0 ? {} : { fields }),
      ...(more === 0 ? {} : { more }),
      ...(kinds.length === 0 ? {} : { kinds: kinds.map(({ path, kind }) => `${path} ${kind}`) }),
    };
    if (isNew) log.info({ ...detail, fields: known }, 'first event of this type');
    else if (isSettled) log.warn(detail, 'events of this type have changed');
    else log.info(detail, 'events of this type have more fields');
  }

  #tellFull(): void {
    if (this.#toldFull || !this.#isFull) return;
    this.#toldFull = true;
    this.#options.log.warn(
      { types: this.#memory.types.size, fields: this.#memory.fields },
      'the schema memory is full; what is new from now on may not be told',
    );
  }

  /** As an event to the sink that wants it. */
  async #send(news: TypeNews): Promise<void> {
    const { settings, ingest, envelope, clock } = this.#options;
    const { alertTo } = settings();
    if (alertTo === null) return;
    await ingest().accept(changeEvent(news, envelope(), clock.now()), { handling: { only: [alertTo] } });
  }
}

/** What an erasure has left of an event. */
function isLeft({ handling }: JournalEvent): boolean {
  return handling.erased === true;
}
