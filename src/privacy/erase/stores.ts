import { resolve } from 'node:path';
import { Places, urlOf } from '../../archive/places.ts';
import { readArchive } from '../../archive/read.ts';
import { systemClock, type Clock } from '../../core/clock.ts';
import type {
  ErasableStore,
  ErasureProgress,
  ErasureRun,
  LeftItem,
  Subject,
  TakenOut,
} from '../../core/erasure.ts';
import type { KeyLedger, NotedArchive, OpenProof } from '../../core/proof.ts';
import type { SinkLog } from '../../core/sink.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { CheckpointStore } from '../../core/source.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import type { Live } from '../../lib/live.ts';
import { KeyErasure } from '../seal/key-erasure.ts';
import type { ErasedUsers } from './erased-users.ts';
import { noteLength } from './list-length.ts';
import type { StorageSettings } from '../../storage/fields.ts';
import { openStore } from '../../storage/open.ts';
import { earlierPlaces, missingPlace, realOf, unreadNotes, withoutKeys } from './earlier-archives.ts';
import { openFolder } from './open-folder.ts';
import { leftReplays, leftSpools, type Spooling } from './left-spools.ts';
import { LocalErasures } from './local-erasures.ts';
import { outputsOf } from './outputs.ts';
import { openObjects } from './open-objects.ts';
import { PlaceErasure } from './place-erasure.ts';

/** The journal, when it is erased from: it forgets the requests as well, when they are done. */
export interface ErasableJournal extends ErasableStore {
  erased(subjects: readonly Subject[]): Promise<void>;
  readonly checkpoints: CheckpointStore;
  /** Left out where nothing is kept of events that are gone. */
  forget?(events: readonly TakenOut[]): Promise<void>;
  /** No more is to be forgotten. */
  forgotten?(signal: AbortSignal): Promise<void>;
}

/** The part of a config that says what is erased from. `grace` is in milliseconds. */
export interface ErasingConfig extends Spooling {
  readonly journal: { readonly path: string; readonly type: 'local' | 'kafka' };
  readonly erasure: { readonly path: string; readonly grace: number; readonly folders: readonly string[] };
  readonly envelope: { readonly team: string; readonly user: string; readonly clientUser: string };
  readonly receipts: { readonly path: string | null };
  readonly storage: StorageSettings;
}

/** What an erasure needs of the system around it; a command that works alone has a journal at most. */
export interface ErasingParts {
  readonly plan: Live<{ readonly config: ErasingConfig }>;
  readonly users: ErasedUsers;
  /** Asked for when there is something to erase: null when there is none, or none yet. */
  readonly journal: () => Promise<ErasableJournal | null>;
  /** What a sink that is open here has to clear beside its files, such as the keys of sealed records. */
  readonly erasable?: (sink: string) => ErasableStore | null;
  readonly settleSink?: (name: string, holds: (path: string) => Promise<boolean>) => Promise<void>;
  readonly settle?: (subjects: readonly Subject[]) => Promise<readonly LeftItem[]>;
  readonly proof: OpenProof;
  readonly clock?: Clock;
  readonly onProgress?: (progress: ErasureProgress) => void;
  readonly log: SinkLog;
  readonly signal: AbortSignal;
}

/** Erasures over everything the config knows of: the journal, the folders of sinks, `erasure.folders`. */
export function createErasures(parts: ErasingParts): LocalErasures {
  const { plan, users, journal, settle, proof, clock = systemClock, log, signal, onProgress } = parts;
  const { erasure, journal: section } = plan.value.config;
  return new LocalErasures({
    folder: erasure.path,
    grace: erasure.grace,
    users,
    followers: section.type === 'kafka',
    // Folders last: what is still on its way to one has come to rest by then. Keys first: a crash after them leaves nothing to read.
    stores: async () => {
      const kept = await journal();
      const { heads } = await proof();
      return [
        ...keyStores(parts),
        ...(kept === null ? [] : [kept]),
        ...databases(parts),
        ...folderStores(parts, heads.archives()),
        ...unreadNotes(heads.forged()),
      ];
    },
    beyond: () => sinksBeyond(plan.value.config),
    settle,
    forget: async (events) => (await journal())?.forget?.(events),
    forgotten: async (running) => (await journal())?.forgotten?.(running),
    closed: async (subjects) => {
      const kept = await journal();
      await kept?.erased(subjects);
      if (kept !== null) await noteLength(users, kept.checkpoints);
    },
    proof,
    clock,
    log,
    signal,
    onProgress,
  });
}

/** The keys of sealed archives: of the sink that has them open, else of the store as it lies there. */
function keyStores({ plan, erasable, proof }: ErasingParts): ErasableStore[] {
  const { receipts, storage } = plan.value.config;
  const ledger = async (): Promise<KeyLedger> => (await proof()).ledger;
  return Object.entries(plan.value.config.sinks).flatMap(([name, { description }]) => {
    const { keys, archive } = description;
    if (keys === undefined) return [];
    const store = erasable?.(name) ?? KeyErasure.at(name, keys.store, () => keys.masterKey(), ledger);
    if (archive === undefined) return store;
    const shown = (run: ErasureRun): ErasureRun => ({
      ...run,
      hasLog: receipts.path !== null,
      showSealed: (opener) => readSealed(archive, storage, run.signal, opener),
    });
    return { name: store.name, erase: (run) => store.erase(shown(run)) };
  });
}

/** @throws Error when some of it cannot be read; the rest was */
async function readSealed(
  archive: string,
  storage: StorageSettings,
  signal: AbortSignal,
  opener: RecordOpener,
): Promise<void> {
  const places = new Places(storage);
  let unread: string | null = null;
  try {
    for await (const item of readArchive(archive, { places, opener, parts: true, signal }))
      if (item.kind === 'problem' && item.sealed === undefined) unread ??= `${item.file}: ${item.reason}`;
  } finally {
    await places.close();
  }
  if (unread !== null) throw new Error(unread);
}

/** What sinks keep in databases. */
function databases({ plan }: ErasingParts): ErasableStore[] {
  return Object.values(plan.value.config.sinks).flatMap(({ description }) => description.erases?.() ?? []);
}

/** The sinks that have what they were sent where no erasure looks: brokers, endpoints, modules that name no folder. */
function sinksBeyond({ sinks }: Spooling): readonly string[] {
  return Object.entries(sinks).flatMap(([name, { description }]) => {
    const { archive, erases, folders = [] } = description;
    const isInStore = archive !== undefined && isStoreUrl(archive);
    return erases !== undefined || isInStore || folders.some(({ erase }) => erase) ? [] : [name];
  });
}

/** The absolute path of a folder, or the URL of a store: the same for the same place. */
function placeOf(path: string): string {
  return isStoreUrl(path) ? urlOf(path) : resolve(path);
}

/** @param noted archives that the installation has written, or was about to */
function folderStores(
  { plan, settleSink, log, proof }: ErasingParts,
  noted: readonly NotedArchive[],
): ErasableStore[] {
  const { sinks, erasure, journal, envelope, storage } = plan.value.config;
  const { team, user, clientUser } = envelope;
  const found = new Map<string, { name: string; sinks: string[]; isArchive: boolean }>();
  for (const [name, { description }] of Object.entries(sinks)) {
    const { archive, folders = [] } = description;
    // What is in the spool of a store comes to rest in the store.
    const url = archive !== undefined && isStoreUrl(archive) ? [{ path: archive, erase: true }] : [];
    for (const folder of [...folders, ...url]) {
      if (!folder.erase) continue;
      const place = placeOf(folder.path);
      const known = found.get(place) ?? { name: folder.path, sinks: [], isArchive: false };
      const isArchive = known.isArchive || url.includes(folder);
      found.set(place, { ...known, sinks: [...known.sinks, name], isArchive });
    }
  }
  const left = [...leftSpools({ sinks, journal }), ...leftReplays({ journal })];
  for (const path of [...left, ...erasure.folders, ...outputsOf(erasure.path)]) {
    if (!found.has(placeOf(path))) found.set(placeOf(path), { name: path, sinks: [], isArchive: false });
  }
  const earlier = new Map(
    earlierPlaces(noted, found.keys()).map(({ path, archive }) => [path, archive.place === path]),
  );
  for (const path of earlier.keys()) found.set(path, { name: path, sinks: [], isArchive: isStoreUrl(path) });
  const missing = new Map(
    noted.flatMap((archive) =>
      [archive.place, ...archive.spools].map(
        (path) => [realOf(path), () => missingPlace({ path, archive })] as const,
      ),
    ),
  );
  // A folder inside another is a store of its own; and the journal's file is only to be touched by who holds its lock.
  const exclude = [resolve(journal.path), resolve(erasure.path), ...found.keys()];
  return Array.from(found, ([path, { name, sinks: writers, isArchive }]) => {
    const settle = async (holds: (file: string) => Promise<boolean>): Promise<void> => {
      for (const writer of writers) await settleSink?.(writer, holds);
    };
    const open = isStoreUrl(path)
      ? openObjects({
          open: () => openStore(path, storage),
          isArchive,
          exclude: exclude.flatMap((other) =>
            other.startsWith(`${path}/`) ? [`${other.slice(path.length + 1)}/`] : [],
          ),
          folder: resolve(erasure.path),
          log,
          proof,
        })
      : openFolder({
          path,
          exclude: exclude.filter((other) => other !== path),
          missing: missing.get(realOf(path)),
          log,
          proof,
        });
    const store = new PlaceErasure({ name, open, fields: { team, user, clientUser }, settle });
    return earlier.get(path) === true ? withoutKeys(store, path, storage) : store;
  });
}
