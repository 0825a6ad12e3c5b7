import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../core/errors.ts';
import type { SinkLog } from '../core/sink.ts';
import { makeFolder } from '../lib/durable.ts';
import { readAdvice, writeAdvice } from '../lib/advice.ts';

/** Who holds the journal; advice for people and commands, never the lock itself. */
export interface Owner {
  readonly pid: number;
  /** Base URL of its admin API, if it has one. */
  readonly admin: string | null;
  /** Where deliveries go; null until it listens there. */
  readonly url?: string | null;
  /** What that asks for: made at each start, so that whoever takes a dead receiver's port learns nothing of use. */
  readonly token: string | null;
}

const FILE = 'owner.json';

/** Where a receiver says who it is: beside its journal, or without one among its erasures, the only other state it has. */
export function ownerFolder(config: {
  readonly acknowledge: string;
  readonly journal: { readonly type: string; readonly path: string };
  readonly erasure: { readonly path: string };
}): string {
  return isLocal(config) ? config.journal.path : config.erasure.path;
}

/** @throws the system's error when the folder cannot be written */
export function writeOwner(folder: string, owner: Owner): void {
  makeFolder(folder, 0o700);
  writeAdvice(join(folder, FILE), owner);
}

/** The last owner that wrote its name; it may have died since. */
export function readOwner(folder: string): Owner | null {
  const value = readAdvice(join(folder, FILE));
  if (value === null || !('pid' in value)) return null;
  const text = (key: string): string | null => {
    const found = value[key];
    return typeof found === 'string' ? found : null;
  };
  return { pid: Number(value['pid']), admin: text('admin'), url: text('url'), token: text('token') };
}

/** Says that this process serves; where nobody can be told so, it serves all the same. */
export function announceOwner(folder: string, where: Omit<Owner, 'pid'>, log: SinkLog): void {
  try {
    writeOwner(folder, { pid: process.pid, ...where });
  } catch (error) {
    const message =
      'no token can be written for commands and the console: only admin.token opens the admin API';
    log.warn({ folder, error: messageOf(error) }, message);
  }
}

export function clearOwner(folder: string): void {
  rmSync(join(folder, FILE), { force: true });
}

/** What of a config says where events wait. */
export interface Waiting {
  readonly acknowledge: string;
  readonly journal: { readonly type: string };
}

/** Whether events wait on the disk of this machine. */
export function isLocal({ acknowledge, journal }: Waiting): boolean {
  return acknowledge === 'journaled' && journal.type === 'local';
}

/** The name of a journal's database, in its folder. */
export const DATABASE = 'journal.db';
