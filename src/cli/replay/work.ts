import type { ResolvedConfig } from '../../config/config.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import type { Places } from '../../archive/places.ts';
import type { RouteRecord } from '../../core/route-record.ts';
import type { IsErased } from '../../core/ingest.ts';
import { ErasedUsers } from '../../erase/erased-users.ts';
import { destinationsOf, type Destinations } from '../../replay/destinations.ts';
import { listPath, type Listing } from '../../replay/list.ts';
import { FileReader } from '../../replay/read-file.ts';
import { listStore, StoreReader, type AskStore } from '../../replay/read-store.ts';
import { listTopic, readTopic, type TopicLog, type TopicUnit } from '../../replay/read-topic.ts';
import type { ReadUnit } from '../../replay/replay.ts';
import { StepMaker, type Step, type Unit } from '../../replay/unit.ts';
import { AcceptedRoutes } from '../../route/accepted.ts';
import { explicitTargets } from '../../route/explicit.ts';
import { compileRoutes } from '../../route/table.ts';
import type { Validator } from '../../validate/envelope.ts';
import { asItsBodySays, createKeptValidator } from '../../validate/kept-envelope.ts';
import type { ReplayOrder } from './options.ts';

/** What is to be replayed, and the parts that do it. */
export interface ReplayWork {
  readonly loaded: ResolvedConfig;
  readonly order: ReplayOrder;
  readonly list: () => AsyncIterable<Unit>;
  readonly read: ReadUnit;
  readonly expect: (unit: Unit) => void;
  readonly destinations: Destinations;
  /** Their events are not sent, whether they were erased before they are read or after. */
  readonly erased: ErasedUsers;
  /** Asks that list of whom an event is kept as, and of whom its body says that it is. */
  readonly isErased: IsErased;
}

/** What a replay reads with. */
export interface ReplayParts {
  readonly loaded: ResolvedConfig;
  /** Opens sealed records. */
  readonly opener: RecordOpener | undefined;
  readonly ask: AskStore;
  /** What the journal of the config remembers of earlier routes. */
  readonly routes: () => Promise<RouteRecord>;
  /** The journal of a fleet; null where it is on a machine. */
  readonly topicLog: () => Promise<TopicLog | null>;
  /** Where archives are opened. */
  readonly places: Places;
  readonly onPassedOver: Listing['onPassedOver'];
  /** Told of a file that has changed since a part of it was replayed. */
  readonly onChanged: (where: string) => void;
}

/** @throws MillraceError when it cannot be told what earlier routes had redacted */
export async function replayWork(order: ReplayOrder, parts: ReplayParts): Promise<ReplayWork> {
  const { loaded } = parts;
  const table = compileRoutes(loaded.config.routes);
  const erased = ErasedUsers.open(loaded.config.erasure.path);
  const validate = createKeptValidator(loaded.config.envelope);
  const isErased: IsErased = (event) => {
    if (erased.isEmpty) return false;
    const said = asItsBodySays(event, validate);
    return erased.isErased(event) || erased.isErased(said.event, said.reasons);
  };
  const { to } = order;
  const ever = to === null ? [] : new AcceptedRoutes(await parts.routes()).ever;
  const named: Parameters<typeof destinationsOf>[0] =
    to === null ? null : (type, before) => explicitTargets(to, type, table, { ever, before });
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
  { ask, topicLog, places, onPassedOver }: ReplayParts,
): AsyncGenerator<Unit> {
  for (const input of inputs) {
    const log = input.kind === 'store' && input.name === 'journal' ? await topicLog() : null;
    if (input.kind === 'path') yield* listPath(input.path, { places, selection, onPassedOver });
    else if (log !== null) yield* listTopic(log, selection);
    else yield await listStore(input.name, ask);
  }
}

function readerOf(
  { selection, sinks, to }: ReplayOrder,
  { opener, ask, topicLog, places, onChanged }: ReplayParts,
  { validate, isErased }: { readonly validate: Validator; readonly isErased: IsErased },
): Pick<ReplayWork, 'read' | 'expect'> {
  const files = new FileReader({ places, onChanged, selection, validate, opener, isErased });
  const stores = new StoreReader({ selection, sinks, ask, isErased });
  return {
    read: (unit, from, signal) => {
      if (unit.kind === 'file') return files.read(unit, from, signal);
      if (unit.kind === 'unreadable') return unreadable(unit.where, unit.reason);
      if (unit.kind !== 'topic') return stores.read(unit, from, signal);
      const named = (to ?? []).map(({ sink }) => sink);
      return topic(unit, from, { log: topicLog, selection, isErased, sinks: named, signal });
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
  unit: TopicUnit,
  from: number,
  { log, ...around }: Parameters<typeof readTopic>[3] & { readonly log: ReplayParts['topicLog'] },
): AsyncGenerator<Step> {
  const opened = await log();
  if (opened === null) yield* unreadable('journal', 'journal.type is not kafka any more');
  else yield* readTopic(opened, unit, from, around);
}
