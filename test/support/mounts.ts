import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstLack, lacksProgram, lacksRoot, lacksWorking, type Lack } from './requirements.ts';

/** Whether file systems can be mounted here: root alone is not enough in most containers. */
export function lacksMount(): Lack {
  return firstLack(
    lacksRoot(),
    lacksProgram('mount'),
    lacksProgram('unshare'),
    lacksWorking('mount', 'unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']),
  );
}

/**
 * Mounts a small file system in memory.
 * @returns unmounts it
 */
export function mountTmpfs(path: string, size: string): () => void {
  mkdirSync(path, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]);
  return () => {
    // Also where a test that failed still has files open there: later runs could not remove the folder.
    execFileSync('umount', ['-l', path]);
  };
}

/** Writes until the file system is full. */
export function fillDisk(file: string): void {
  const handle = openSync(file, 'w');
  try {
    for (let size = 65_536; size >= 1; size = Math.floor(size / 2)) {
      try {
        for (;;) if (writeSync(handle, Buffer.alloc(size)) < size) break;
      } catch {
        // Full for this size; a smaller one may still have room.
      }
    }
  } finally {
    closeSync(handle);
  }
}

/** EXT4_IOC_SHUTDOWN without flushing the log: from then on nothing reaches the disk any more. Prints when it began. */
const SHUTDOWN = `
import fcntl, os, struct, sys, time
disk = os.open(sys.argv[1], os.O_RDONLY)
moment = time.monotonic_ns()
fcntl.ioctl(disk, 0x8004587d, struct.pack("I", 2))
print(moment)
`;

/** An ext4 of its own in a file, and what a power cut does to it. */
export class Ext4 {
  readonly path: string;
  readonly #image: string;
  #mounted = false;

  /** @param path where it is mounted */
  constructor(image: string, path: string, size = '64M') {
    this.#image = image;
    this.path = path;
    mkdirSync(path, { recursive: true });
    quietly('truncate', '-s', size, image);
    quietly('mkfs.ext4', '-q', '-F', image);
  }

  mount(): void {
    quietly('mount', '-o', 'loop', this.#image, this.path);
    this.#mounted = true;
  }

  unmount(): void {
    if (this.#mounted) quietly('umount', this.path);
    this.#mounted = false;
  }

  /**
   * An fdatasync that is in flight at that moment may still say that all is well, while nothing of it is on the disk: about
   * one cut in 25 does that to a bare loop of writes. With a real one no process would live to hear it, so what is
   * answered from then on does not count.
   * @returns when it began, as `process.hrtime.bigint()` counts
   */
  cutPower(): bigint {
    return BigInt(quietly('python3', '-c', SHUTDOWN, this.path).trim());
  }
}

function quietly(file: string, ...args: readonly string[]): string {
  return execFileSync(file, args, { stdio: 'pipe', encoding: 'utf8' });
}

/** Whether an ext4 can be mounted and cut off here, by doing it. */
export function lacksPowerCut(): Lack {
  const programs = ['mkfs.ext4', 'mount', 'umount', 'truncate', 'python3'].map(lacksProgram);
  const lack = firstLack(lacksRoot(), ...programs);
  if (lack !== null) return lack;
  const folder = mkdtempSync(join(tmpdir(), 'millrace-ext4-'));
  try {
    const trial = new Ext4(join(folder, 'image'), join(folder, 'mounted'), '8M');
    try {
      trial.mount();
      trial.cutPower();
    } finally {
      trial.unmount();
    }
    return null;
  } catch {
    return 'EXT4_IOC_SHUTDOWN on a loop mount does not work here';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
