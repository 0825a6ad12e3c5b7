import { lstatSync } from 'node:fs';
import type { Config } from './config.ts';
import { isLocal } from '../journal/owner.ts';
import type { SinkLog } from '../core/sink.ts';

/** Warns of folders with health data or secrets that every user of the machine can list: those made here are 0700. */
export function warnOfReaders(config: Config, log: SinkLog): void {
  const { journal, erasure } = config;
  const folders = {
    'journal.path': isLocal(config) ? journal.path : null,
    'erasure.path': erasure.path,
  };
  for (const [key, path] of Object.entries(folders)) {
    const mode = path === null ? undefined : lstatSync(path, { throwIfNoEntry: false })?.mode;
    if (mode === undefined || (mode & OTHERS) === 0 || process.platform === 'win32') continue;
    log.warn({ key, path, mode: (mode & 0o777).toString(8) }, 'other users can read this folder: chmod 700');
  }
}

const OTHERS = 0o005;
