import { closeSync, openSync, readSync } from 'node:fs';

/** What a process did to the disk, or said; in the order in which it was done. Paths are relative to the root. */
export type Op =
  | {
      readonly kind: 'open';
      readonly fd: number;
      readonly path: string;
      readonly made: boolean;
      readonly emptied: boolean;
    }
  | { readonly kind: 'close'; readonly fd: number }
  | { readonly kind: 'write'; readonly fd: number; readonly offset: number; readonly data: Buffer }
  | { readonly kind: 'truncate'; readonly fd: number; readonly size: number }
  /** A sync that began with operation number `since` has ended well. */
  | { readonly kind: 'sync'; readonly fd: number; readonly since: number }
  | { readonly kind: 'sync begins'; readonly fd: number }
  | { readonly kind: 'rename' | 'link'; readonly from: string; readonly to: string }
  | { readonly kind: 'unlink' | 'rmdir' | 'mkdir'; readonly path: string }
  | { readonly kind: 'start' }
  /** An HTTP answer; the client may have it from here on. */
  | { readonly kind: 'answer'; readonly text: string };

const HEAD = 40;
const NAMES = { r: 'rename', l: 'link', u: 'unlink', d: 'rmdir', m: 'mkdir' } as const;

/** Reads the log up to where it has been written. */
export function readLog(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    const length = Buffer.alloc(8);
    readSync(file, length, 0, 8, 0);
    const log = Buffer.alloc(Number(length.readBigUInt64LE()));
    readSync(file, log, 0, log.length, 0);
    return log;
  } finally {
    closeSync(file);
  }
}

/**
 * @param log as `readLog` gives it
 * @param root what its paths begin with
 * @returns the operations, and where each stands in the log
 * @throws when something was done that the model of the disk does not know
 */
export function parseLog(log: Buffer, root: string): { readonly ops: Op[]; readonly places: number[] } {
  const ops: Op[] = [];
  const places: number[] = [];
  const begun = new Map<string, number>();
  const relative = (path: string): string => path.slice(root.length + 1);
  for (let at = 8; at < log.length;) {
    places.push(at);
    const kind = String.fromCharCode(log.readUInt32LE(at));
    const fd = log.readInt32LE(at + 8);
    const sync = `${log.readUInt32LE(at + 4)} ${fd}`;
    const flags = log.readUInt32LE(at + 12);
    const offset = Number(log.readBigUInt64LE(at + 16));
    const lengths = [24, 28, 32].map((place) => log.readUInt32LE(at + place)) as [number, number, number];
    let end = at + HEAD;
    const [path, second, data] = lengths.map((length) => log.subarray(end, (end += length))) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    at = (end + 7) & ~7;
    const name = path.toString();
    switch (kind) {
      case 'o':
        ops.push({
          kind: 'open',
          fd,
          path: relative(name),
          made: (flags & 1) !== 0,
          emptied: (flags & 2) !== 0,
        });
        break;
      case 'c':
        ops.push({ kind: 'close', fd });
        break;
      case 'w':
        ops.push({ kind: 'write', fd, offset, data });
        break;
      case 't':
        ops.push({ kind: 'truncate', fd, size: offset });
        break;
      case 's':
        begun.set(sync, ops.length);
        ops.push({ kind: 'sync begins', fd });
        break;
      case 'S':
        ops.push({ kind: 'sync', fd, since: begun.get(sync) ?? 0 });
        break;
      case 'r':
      case 'l':
        ops.push({ kind: NAMES[kind], from: relative(name), to: relative(second.toString()) });
        break;
      case 'u':
      case 'd':
      case 'm':
        ops.push({ kind: NAMES[kind], path: relative(name) });
        break;
      case 'P':
        ops.push({ kind: 'start' });
        break;
      case 'a':
        ops.push({ kind: 'answer', text: data.toString('latin1') });
        break;
      default:
        throw new Error(`the receiver used ${name}, which the recorder does not know`);
    }
  }
  return { ops, places };
}
