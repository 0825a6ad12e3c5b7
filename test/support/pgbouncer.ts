import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { lacksPostgres, type Postgres } from './postgres.ts';
import { firstLack, lacksProgram, type Lack } from './requirements.ts';
import { until } from './until.ts';

const PORT = 6432;

/** Why PgBouncer cannot be run in front of a server here, or null. */
export function lacksPgBouncer(): Lack {
  return firstLack(lacksPostgres(), lacksProgram('pgbouncer'));
}

/** PgBouncer in transaction mode, in front of a server of the tests, on a socket in a temporary folder. */
export class PgBouncer {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** @param connections to the server: so many transactions run at the same time */
  static async start(server: Postgres, connections: number): Promise<PgBouncer> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-pgbouncer-'));
    const pooler = new PgBouncer(folder);
    chmodSync(folder, 0o755);
    writeFileSync(
      join(folder, 'pgbouncer.ini'),
      `[databases]
postgres = host=${server.folder} user=postgres
[pgbouncer]
listen_addr =
listen_port = ${PORT}
unix_socket_dir = ${folder}
auth_type = any
admin_users = postgres
pool_mode = transaction
default_pool_size = ${connections}
server_round_robin = 1
logfile = ${join(folder, 'log')}
pidfile = ${join(folder, 'pid')}
`,
    );
    // It refuses to run as root; the server's user has nothing else to do.
    const { uid, gid } = statSync(server.folder);
    chownSync(folder, uid, gid);
    const started = spawnSync('pgbouncer', ['-q', '-d', join(folder, 'pgbouncer.ini')], {
      ...(process.getuid?.() === 0 ? { uid, gid } : {}),
      cwd: folder,
      encoding: 'utf8',
    });
    if (started.status !== 0) throw new Error(`pgbouncer: ${started.error?.message ?? started.stderr}`);
    await until('PgBouncer listens', () => existsSync(join(folder, `.s.PGSQL.${PORT}`)));
    return pooler;
  }

  /** Address for clients; anybody is let in without a password. */
  get url(): string {
    return `postgres://postgres@localhost:${PORT}/postgres?host=${this.#folder}`;
  }

  /** Clients that wait for a connection to the server. */
  async waiting(): Promise<number> {
    const console = new pg.Client({ connectionString: this.url.replace('/postgres?', '/pgbouncer?') });
    await console.connect();
    const { rows } = await console.query<{ cl_waiting: unknown }>('SHOW POOLS');
    await console.end();
    return rows.reduce((sum, { cl_waiting }) => sum + Number(cl_waiting), 0);
  }

  /** Ends at once: connections break on both sides. */
  async stop(): Promise<void> {
    const file = join(this.#folder, 'pid');
    process.kill(Number(readFileSync(file, 'utf8')));
    await until('PgBouncer has ended', () => !existsSync(file));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
