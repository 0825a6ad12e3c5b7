import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../core/errors.ts';
import type { SinkLog } from '../core/sink.ts';
import { makeFolder } from '../lib/durable.ts';
import { readAdvice, writeAdvice } from '../lib/advice.ts';
import { isRecord } from '../lib/parsed.ts';

/** The process that serves a journal: information for people and commands, not the lock. */
export interface Owner {
  readonly pid: number;
  /** Base URL of its admin API; null without one. */
  readonly admin: string | null;
  /** URL of deliveries; null until it listens there. */
  readonly url?: string | null;
  /** Null until all its parts run. */
  readonly config?: ConfigInForce | null;
  /** Token of its admin API. It is new at each start, so that a process that takes a dead receiver's port learns nothing of use. */
  readonly token: string | null;
}

/** The config that a receiver runs with. */
export interface ConfigInForce {
  /** Absolute path. */
  readonly file: string;
  /** When that version of the file was read: ISO 8601. */
  readonly since: string;
  /** Why a later version could not be used; null when there is none. */
  readonly refused: string | null;
}

const FILE = 'owner.json';

/** Folder of the file that names the receiver: the journal's, or without one that of the erasures, its only other state. */
export function ownerFolder(
  config: Waiting & Readonly<Record<'journal' | 'erasure', { readonly path: string }>>,
): string {
  return isLocal(config) ? config.journal.path : config.erasure.path;
}

/** @throws the system's error when the folder cannot be written */
export function writeOwner(folder: string, owner: Owner): void {
  makeFolder(folder, 0o700);
  writeAdvice(join(folder, FILE), owner);
}

/** The last owner that was written; its process may have ended since. */
export function readOwner(folder: string): Owner | null {
  const value = readAdvice(join(folder, FILE));
  if (!('pid' in value)) return null;
  const text = (key: string): string | null => {
    const found = value[key];
    return typeof found === 'string' ? found : null;
  };
  const about = { admin: text('admin'), url: text('url'), token: text('token') };
  return { pid: Number(value['pid']), ...about, config: readConfig(value['config']) };
}

function readConfig(value: unknown): ConfigInForce | null {
  const { file, since, refused } = isRecord(value) ? value : {};
  if (typeof file !== 'string' || typeof since !== 'string') return null;
  return { file, since, refused: typeof refused === 'string' ? refused : null };
}

/** Notes the config of this process, or that a later version of it was refused. Does nothing in a folder of another process. */
export function noteConfig(folder: string, change: Partial<ConfigInForce>, log: SinkLog): void {
  const owner = readOwner(folder);
  if (owner?.pid !== process.pid) return;
  const config = { file: '', since: '', refused: null, ...owner.config, ...change };
  announceOwner(folder, { ...owner, config }, log);
}

/** Writes that this process serves. When that fails it serves all the same, and a warning is logged. */
export function announceOwner(folder: string, where: Omit<Owner, 'pid'>, log: SinkLog): void {
  try {
    writeOwner(folder, { ...where, pid: process.pid });
  } catch (error) {
    const message =
      'no token can be written for commands and the console: only admin.token opens the admin API';
    log.warn({ folder, error: messageOf(error) }, message);
  }
}

export function clearOwner(folder: string): void {
  rmSync(join(folder, FILE), { force: true });
}

/** The part of a config that says where events wait. */
export interface Waiting {
  readonly acknowledge: string;
  readonly journal: { readonly type: string };
}

/** True when events wait on the disk of this machine. */
export function isLocal({ acknowledge, journal }: Waiting): boolean {
  return acknowledge === 'journaled' && journal.type === 'local';
}

/** Name of the database in the journal's folder. */
export const DATABASE = 'journal.db';
