import { execFileSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { firstLack, type Lack, lacksProgram } from '../support/requirements.ts';

const SOURCE = join(import.meta.dirname, 'recorder.c');
/** As the recorder maps it; the file stays sparse. */
const LARGEST = 2 ** 30;

/** The recorder stands between a program and glibc, and its log is written as x86-64 and arm64 lay it out. */
export function lacksRecorder(): Lack {
  return firstLack(process.platform === 'linux' ? null : 'needs Linux', lacksProgram('cc'));
}

/** Compiles it into a folder. @returns the library's path */
export function buildRecorder(folder: string): string {
  const library = join(folder, 'recorder.so');
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, SOURCE, '-ldl', '-lpthread']);
  return library;
}

/** Makes an empty log. All processes of a history append to the same one. */
export function makeLog(path: string): void {
  const file = openSync(path, 'wx');
  ftruncateSync(file, LARGEST);
  closeSync(file);
}

export interface RecordOptions {
  readonly library: string;
  readonly log: string;
  /** What lies below it is recorded; absolute, without links. */
  readonly root: string;
  /** The process kills itself in front of this operation. */
  readonly killAt?: number | undefined;
}

/** Microseconds that a sync takes on a folder in memory, so that as much happens beside it as on a disk. */
const SYNC_MICROSECONDS = 200;

/** The environment of a process that is recorded. */
export function recorded({ library, log, root, killAt }: RecordOptions): Record<string, string> {
  return {
    LD_PRELOAD: library,
    TORTURE_LOG: log,
    TORTURE_ROOT: root,
    TORTURE_SYNC_US: String(SYNC_MICROSECONDS),
    ...(killAt === undefined ? {} : { TORTURE_KILL_AT: String(killAt) }),
    UV_USE_IO_URING: '0',
  };
}
