import { join, resolve } from 'node:path';
import { Places, urlOf } from '../../archive/places.ts';
import { readArchive } from '../../archive/read.ts';
import { systemClock } from '../../core/clock.ts';
import type { ErasableStore, ErasureRun, Subject, RemovedEvent } from '../../core/erasure.ts';
import type { KeyLedger, NotedArchive } from '../../core/proof.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { CheckpointStore } from '../../core/source.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Live } from '../../lib/live.ts';
import { KeyErasure } from '../seal/key-erasure.ts';
import { noteLength } from './list-length.ts';
import type { StorageSettings } from '../../storage/fields.ts';
import { openStore } from '../../storage/open.ts';
import {
  earlierPlaces,
  missingFolder,
  missingPlace,
  realOf,
  unreadNotes,
  withoutKeys,
} from './earlier-archives.ts';
import type { EnvelopeFields } from './file-kinds.ts';
import { openFolder, type Missing } from './open-folder.ts';
import { leftReplays, leftSpools, type Spooling } from './left-spools.ts';
import { LocalErasures, type LocalErasuresOptions } from './local-erasures.ts';
import { OUTPUTS, outputsOf } from './outputs.ts';
import { openObjects } from './open-objects.ts';
import { placeErasure } from './place-erasure.ts';

/** The journal as an erasure needs it. */
export interface ErasableJournal extends ErasableStore {
  /** Forgets requests that are done. */
  erased(subjects: readonly Subject[]): Promise<void>;
  readonly checkpoints: CheckpointStore;
  /** Absent where nothing is kept of removed events. */
  forget?(events: readonly RemovedEvent[]): Promise<void>;
  /** Called after the last `forget` of a run. */
  forgotten?(signal: AbortSignal): Promise<void>;
}

/** The part of a config that says where erasures look. `grace` is in milliseconds. */
export interface ErasingConfig extends Spooling {
  readonly journal: { readonly path: string; readonly type: 'local' | 'kafka' };
  readonly erasure: { readonly path: string; readonly grace: number; readonly folders: readonly string[] };
  readonly envelope: EnvelopeFields;
  readonly receipts: { readonly path: string | null };
  readonly storage: StorageSettings;
}

/** What erasures need of the system around them; a command without a receiver has a journal at most. */
export interface ErasingParts
  extends
    Pick<LocalErasuresOptions, 'users' | 'settle' | 'proof' | 'onProgress' | 'log' | 'signal'>,
    Partial<Pick<LocalErasuresOptions, 'clock'>> {
  readonly plan: Live<{ readonly config: ErasingConfig }>;
  /** Called when there is something to erase; null when there is no journal. */
  readonly journal: () => Promise<ErasableJournal | null>;
  /** What an open sink erases itself, such as the keys of sealed records. */
  readonly erasable?: (sink: string) => ErasableStore | null;
  readonly settleSink?: (name: string, holds: (path: string) => Promise<boolean>) => Promise<void>;
}

/** The erasures of an installation, run by a command. */
export function createErasures(parts: ErasingParts): LocalErasures {
  return new LocalErasures(erasuresOptions(parts));
}

/** Erasures from all that the config names: the journal, databases, the folders of sinks, `erasure.folders`. */
export function erasuresOptions(parts: ErasingParts): LocalErasuresOptions {
  const { plan, users, journal, settle, proof, clock = systemClock, log, signal, onProgress } = parts;
  const { erasure, journal: section } = plan.value.config;
  return {
    folder: erasure.path,
    grace: erasure.grace,
    users,
    followers: section.type === 'kafka',
    // Keys first: after a crash nothing can be read. Folders last: files that were being written are closed by then.
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
  };
}

/** The keys of sealed archives, by the sink that has them open, or from their folder. */
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

/** Shows every sealed record of an archive. @throws Error when some of it cannot be read; the rest was shown */
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

/** Databases of sinks. */
function databases({ plan }: ErasingParts): ErasableStore[] {
  return Object.values(plan.value.config.sinks).flatMap(({ description }) => description.erases?.() ?? []);
}

/** Sinks whose data no erasure reaches: brokers, endpoints, modules that name no folder. */
function sinksBeyond({ sinks }: Spooling): readonly string[] {
  return Object.entries(sinks).flatMap(([name, { description }]) => {
    const { archive, erases, folders = [] } = description;
    const isInStore = archive !== undefined && isStoreUrl(archive);
    return erases !== undefined || isInStore || folders.some(({ erase }) => erase) ? [] : [name];
  });
}

/** A folder or a prefix of a store that is searched. */
interface SearchedPlace {
  /** As the config has it. */
  readonly name: string;
  /** Names of the sinks that write there. */
  readonly sinks: string[];
  /** True for the archive of a sink in a store. */
  isArchive: boolean;
  /** True for an archive that no sink of this config writes. */
  isEarlier: boolean;
  /** As in `FolderOptions`; null for one that need not be there. */
  missing: (() => Missing | null) | null;
}

/** The absolute path of a folder, or the URL of a store: the same for the same place. */
function keyOf(path: string): string {
  return isStoreUrl(path) ? urlOf(path) : resolve(path);
}

/** @param noted archives that the installation has written, or was about to */
function searchedPlaces(
  { sinks, journal, erasure }: ErasingConfig,
  noted: readonly NotedArchive[],
): ReadonlyMap<string, SearchedPlace> {
  const places = new Map<string, SearchedPlace>();
  const placeAt = (name: string): SearchedPlace =>
    getOrMake(places, keyOf(name), () => ({
      name,
      sinks: [],
      isArchive: false,
      isEarlier: false,
      missing: null,
    }));
  for (const [name, { description }] of Object.entries(sinks)) {
    const { archive, folders = [] } = description;
    for (const { path, erase } of folders) if (erase) placeAt(path).sinks.push(name);
    if (archive === undefined || !isStoreUrl(archive)) continue;
    const place = placeAt(archive);
    place.sinks.push(name);
    place.isArchive = true;
  }
  for (const path of [...leftSpools({ sinks, journal }), ...leftReplays({ journal })]) placeAt(path);
  for (const path of erasure.folders)
    placeAt(path).missing = () => missingFolder(path, 'take it out of erasure.folders', true);
  // A command's output is often deleted on purpose: no request waits for it.
  const line = `remove its line from ${join(erasure.path, OUTPUTS)}`;
  for (const path of outputsOf(erasure.path))
    placeAt(path).missing ??= () => missingFolder(path, line, false);
  for (const { path, archive } of earlierPlaces(noted, places.keys())) {
    const place = placeAt(path);
    place.isArchive = isStoreUrl(path);
    place.isEarlier = archive.place === path;
  }
  return places;
}

function folderStores(
  { plan, settleSink, log, proof }: ErasingParts,
  noted: readonly NotedArchive[],
): ErasableStore[] {
  const { config } = plan.value;
  const { erasure, journal, storage } = config;
  const places = searchedPlaces(config, noted);
  const missing = new Map(
    noted.flatMap((archive) =>
      [archive.place, ...archive.spools].map((path) => {
        const find = (): Missing | null => {
          const error = missingPlace({ path, archive });
          return error && { error, waits: true };
        };
        return [realOf(path), find] as const;
      }),
    ),
  );
  // A place inside another is searched by itself; the journal's files only by the process that has its lock.
  const exclude = [resolve(journal.path), resolve(erasure.path), ...places.keys()];
  return Array.from(places, ([path, { name, sinks, isArchive, isEarlier, missing: isGone }]) => {
    const settle = async (holds: (file: string) => Promise<boolean>): Promise<void> => {
      for (const sink of sinks) await settleSink?.(sink, holds);
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
          missing: missing.get(realOf(path)) ?? isGone ?? undefined,
          log,
          proof,
        });
    const store = placeErasure({ name, open, fields: config.envelope, settle });
    return isEarlier ? withoutKeys(store, path, storage) : store;
  });
}
