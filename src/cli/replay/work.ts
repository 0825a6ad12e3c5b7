import { setTimeout as wait } from 'node:timers/promises';
import type { Places } from '../../archive/places.ts';
import type { LoadedConfig, ResolvedConfig } from '../../config/config.ts';
import { missingPlace } from '../../config/rules.ts';
import { MillraceError } from '../../core/errors.ts';
import type { IsErased } from '../../core/ingest.ts';
import { NO_ROUTES, type RouteRecord } from '../../core/route-record.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import { ErasedUsers } from '../../privacy/erase/erased-users.ts';
import type { UnitReader } from '../../replay/ahead.ts';
import { destinationsOf, targetsNamed } from '../../replay/destinations.ts';
import { type Listing, listPath } from '../../replay/list.ts';
import { FileReader } from '../../replay/read-file.ts';
import { type AskStore, listStore, readStore } from '../../replay/read-store.ts';
import { listTopic, readTopic, type TopicLog, type TopicUnit } from '../../replay/read-topic.ts';
import { type Step, StepMaker, type Unit } from '../../replay/unit.ts';
import { AcceptedRoutes } from '../../deliver/routes/accepted.ts';
import { compileRoutes, explicitTargets } from '../../deliver/routes/table.ts';
import type { Validator } from '../../receive/validate/envelope.ts';
import { asItsBodySays, createKeptValidator } from '../../receive/validate/kept-envelope.ts';
import type { OpenOperations, openTopics } from '../operations.ts';
import type { ReplayOrder } from './options.ts';

/** A replay that can be counted or run. */
export type ReplayWork = Awaited<ReturnType<typeof replayWork>>;

/** What a replay needs to read its inputs. */
interface ReplayParts {
  readonly loaded: ResolvedConfig;
  /** Opens sealed records; undefined without keys. */
  readonly opener: RecordOpener | undefined;
  readonly store: ReplayStore;
  readonly places: Places;
  readonly onPassedOver: Listing['onPassedOver'];
  readonly onIgnored: Listing['onIgnored'];
  /** A file has changed since a part of it was replayed. */
  readonly onChanged: (where: string) => void;
}

/** @throws MillraceError when the routes of the journal cannot be read */
export async function replayWork(order: ReplayOrder, parts: ReplayParts) {
  const { loaded } = parts;
  const table = compileRoutes(loaded.config.routes);
  /** Users whose events are not sent; read again while the replay runs. */
  const erased = ErasedUsers.open(loaded.config.erasure.path);
  const validate = createKeptValidator(loaded.config.envelope);
  /** Checks the ids of the envelope and those in the body. */
  const isErased: IsErased = (event) => {
    if (erased.isEmpty) return false;
    const said = asItsBodySays(event, validate);
    return erased.isErased(event) || erased.isErased(said.event, said.reasons);
  };
  const { to } = order;
  const ever = to === null ? [] : new AcceptedRoutes(await parts.store.routes()).ever;
  const hasDefault = (sink: string): boolean =>
    missingPlace({ sink, destination: null }, loaded.config.sinks[sink]?.description) === null;
  const named: Parameters<typeof destinationsOf>[0] =
    to === null
      ? null
      : (type, before) => {
          const targets = targetsNamed(to, table.routesFor(type).targets, hasDefault);
          return explicitTargets(targets, type, table, { ever, before });
        };
  return {
    loaded,
    order,
    list: () => listInputs(order, parts),
    ...readerOf(order, parts, { validate, isErased }),
    erased,
    isErased,
    destinations: destinationsOf(named, order.sinks, (type) => table.routesFor(type).targets),
  };
}

async function* listInputs(
  { inputs, selection }: ReplayOrder,
  { store, places, onPassedOver, onIgnored }: ReplayParts,
): AsyncGenerator<Unit> {
  for (const input of inputs) {
    const log = input.kind === 'store' && input.name === 'journal' ? await store.topicLog() : null;
    if (input.kind === 'path') yield* listPath(input.path, { places, selection, onPassedOver, onIgnored });
    else if (log !== null) yield* listTopic(log, selection);
    else yield await listStore(input.name, store.ask);
  }
}

function readerOf(
  { selection, pointers, sinks, to }: ReplayOrder,
  { opener, store, places, onChanged }: ReplayParts,
  { validate, isErased }: { readonly validate: Validator; readonly isErased: IsErased },
): UnitReader {
  const files = new FileReader({ places, onChanged, selection, pointers, validate, opener, isErased });
  return {
    read: (unit, from, signal) => {
      if (unit.kind === 'file') return files.read(unit, from, signal);
      if (unit.kind === 'unreadable') return unreadable(unit.where, unit.reason);
      const around = { selection, isErased, signal };
      if (unit.kind !== 'topic') return readStore(unit, from, { ...around, sinks, ask: store.ask });
      const named = (to ?? []).map(({ sink }) => sink);
      return topic(store, unit, from, { ...around, sinks: named });
    },
    expect: (unit) => {
      if (unit.kind === 'file') files.expect(unit);
    },
  };
}

async function* unreadable(where: string, reason: string): AsyncGenerator<Step> {
  const step = new StepMaker(1);
  step.problem(where, reason);
  yield step.made();
}

async function* topic(
  store: ReplayStore,
  unit: TopicUnit,
  from: number,
  around: Parameters<typeof readTopic>[3],
): AsyncGenerator<Step> {
  const log = await store.topicLog();
  if (log === null) yield* unreadable('journal', 'journal.type is no longer kafka');
  else yield* readTopic(log, unit, from, around);
}

/** Tries while a receiver restarts, and milliseconds between them. */
const TRIES = { count: 30, everyMs: 1000 };

/** Opens the journal at its first use, through the running receiver or directly. */
export class ReplayStore {
  readonly #loaded: LoadedConfig;
  readonly #signal: AbortSignal;
  #open: OpenOperations | null = null;
  #topics: Awaited<ReturnType<typeof openTopics>> | null = null;

  constructor(loaded: LoadedConfig, signal: AbortSignal) {
    this.#loaded = loaded;
    this.#signal = signal;
  }

  readonly ask: AskStore = async (work) => {
    for (let tries = 1; ; tries += 1) {
      try {
        // Loaded late: a replay of archives needs no journal.
        this.#open ??= await (await import('../operations.ts')).openOperations(this.#loaded);
        return await work(this.#open.operations);
      } catch (error) {
        await this.close();
        if (!isTemporary(error) || tries === TRIES.count) throw error;
        await wait(TRIES.everyMs, undefined, { signal: this.#signal });
      }
    }
  };

  /** Routes that the journal remembers. Closes the journal again: a replay of archives must not hold it. */
  async routes(): Promise<RouteRecord> {
    const { config } = this.#loaded;
    if (config.acknowledge === 'delivered' || config.journal.type === 'kafka') return NO_ROUTES;
    try {
      return await this.ask((operations) => operations.routes());
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'journal_missing') return NO_ROUTES;
      throw error;
    } finally {
      await this.close();
    }
  }

  /** The journal in Kafka, which is read directly also beside a receiver; null for another journal. */
  async topicLog(): Promise<TopicLog | null> {
    const { config } = this.#loaded;
    if (config.journal.type !== 'kafka') return null;
    this.#topics ??= await (await import('../operations.ts')).openTopics(config);
    return this.#topics.sharedLog();
  }

  async close(): Promise<void> {
    const topics = this.#topics;
    this.#topics = null;
    await topics?.close();
    const open = this.#open;
    this.#open = null;
    await open?.close();
  }
}

function isTemporary(error: unknown): boolean {
  return (
    error instanceof MillraceError &&
    (error.code === 'receiver_unreachable' || error.code === 'journal_in_use')
  );
}
