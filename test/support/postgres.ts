import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, globSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstLack, lacksProgram, type Lack } from './requirements.ts';

/** The server refuses to run as root; this user has nothing else to do. */
const OTHER = 'daemon';

const isRoot = process.getuid?.() === 0;

/** Why a PostgreSQL server cannot be run here, or null. */
export function lacksPostgres(): Lack {
  const server = binary('initdb') === null ? 'needs the PostgreSQL server' : null;
  return firstLack(server, lacksProgram('psql'), isRoot ? lacksProgram('runuser') : null);
}

/** A server of its own in a temporary folder, on a socket there. */
export class Postgres {
  /** Where its socket is. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static start(): Postgres {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-pg-'));
    const server = new Postgres(folder);
    if (isRoot) {
      const [uid, gid] = ['-u', '-g'].map((flag) => Number(run('id', [flag, OTHER])));
      chownSync(folder, uid ?? 0, gid ?? 0);
    }
    chmodSync(folder, 0o755);
    makeData(join(folder, 'data'));
    server.up();
    return server;
  }

  /** Starts it, at first and after `down`. */
  up(): void {
    const folder = this.folder;
    const options = `-k ${folder} -c listen_addresses='' -c fsync=off`;
    asOther('pg_ctl', ['-D', join(folder, 'data'), '-w', '-l', join(folder, 'log'), '-o', options, 'start']);
  }

  /** Ends it at once, as a crash would: connections break. */
  down(): void {
    asOther('pg_ctl', ['-D', join(this.folder, 'data'), '-m', 'immediate', 'stop']);
  }

  /** Address for clients; anybody is let in without a password. */
  get url(): string {
    return `postgres://postgres@localhost/postgres?host=${this.folder}`;
  }

  /** Runs SQL, stopping at the first error, and returns what it prints: unaligned, without headers. */
  sql(text: string): string {
    return run(
      binary('psql') ?? 'psql',
      ['-h', this.folder, '-U', 'postgres', '-v', 'ON_ERROR_STOP=1', '-qAt'],
      text,
    ).trim();
  }

  stop(): void {
    this.down();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** As `initdb` has made it for another server of this run, if one was before: a copy costs a fourth of it. */
function makeData(data: string): void {
  const kept = process.env['MILLRACE_TEST_KEPT'];
  const template = kept === undefined ? null : join(kept, 'postgres');
  if (template !== null && existsSync(template)) return void run('cp', ['-a', template, data]);
  asOther('initdb', ['-D', data, '-U', 'postgres', '--auth=trust', '--no-sync', '--wal-segsize=1']);
  if (template === null) return;
  const copy = `${template}-${process.pid}`;
  run('cp', ['-a', data, copy]);
  try {
    renameSync(copy, template);
  } catch {
    // Another worker's was there first.
    rmSync(copy, { recursive: true });
  }
}

function asOther(program: string, args: readonly string[]): void {
  const path = binary(program) ?? program;
  if (isRoot) run('runuser', ['-u', OTHER, '--', path, ...args]);
  else run(path, args);
}

/** The newest server's own program: Debian keeps them off the PATH. */
function binary(name: string): string | null {
  const found = globSync(`/usr/lib/postgresql/*/bin/${name}`).toSorted().at(-1);
  if (found !== undefined) return found;
  const onPath = (process.env['PATH'] ?? '').split(':').map((folder) => join(folder, name));
  return onPath.find((path) => existsSync(path)) ?? null;
}

function run(program: string, args: readonly string[], input = ''): string {
  // Not in a folder that the other user may not enter.
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    input,
    encoding: 'utf8',
    cwd: tmpdir(),
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: 180_000,
  });
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`);
}
