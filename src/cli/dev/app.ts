import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { startApp, type App } from '../../app/app.ts';
import { resolveText } from '../../config/load.ts';
import type { MillraceError } from '../../core/errors.ts';
import { newSecret } from '../../core/secrets.ts';
import { startSandbox, type Sandbox } from '../../sandbox/start.ts';
import type { Io } from '../io.ts';
import { createLog } from '../log.ts';

export interface DevOptions {
  /** Folder of all its data. */
  readonly folder: string;
  /** 0 is any free port; undefined is the usual port, or a free one when that is taken. */
  readonly port: number | undefined;
  readonly adminPort: number | undefined;
  readonly servicePort: number | undefined;
  readonly users: number;
  /** Milliseconds between two events of the stand-in; 0 for none. */
  readonly every: number;
}

export type DevApp = Awaited<ReturnType<typeof startDev>>;

const USUAL = { receiver: 8080, admin: 9090, service: 8090 };
/** Closes files early, so that there is something to read. */
const ROTATE = '10s';

/**
 * A receiver and a stand-in of the service that sends to it.
 * @throws MillraceError address_unavailable, journal_in_use, folder_unwritable
 */
export async function startDev(io: Io, options: DevOptions) {
  const { folder, users, every } = options;
  const port = options.port ?? (await usualOrFree(USUAL.receiver));
  const adminPort = options.adminPort ?? (await usualOrFree(USUAL.admin));
  const servicePort = options.servicePort ?? (await usualOrFree(USUAL.service));
  const secret = newSecret();
  const sandbox = await startSandbox({ port: servicePort, users, dailyEveryMs: every });
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  let app: App;
  const config = join(folder, 'millrace.yaml');
  try {
    const text = devConfig(folder, port, adminPort, secret, sandbox);
    await mkdir(folder, { recursive: true, mode: 0o750 });
    // Without the environment: production secrets must not be used.
    const loaded = await resolveText(text, { file: config, env: {} });
    app = await startApp(loaded, {
      log: createLog(io, { level: 'warn' }),
      onFailure: (error: MillraceError) => failure.reject(error),
    });
    await writeFile(config, text, { mode: 0o600 });
  } catch (error) {
    await sandbox.stop();
    throw error;
  }
  // The receiver's address is known only now.
  sandbox.state.endpoints.create(sandbox.teamId, { url: app.url, secret });
  return {
    app,
    sandbox,
    secret,
    /** The receiver's config file; it contains the secret. */
    config,
    /** Rejects when the journal can no longer be trusted. */
    failed: failure.promise,
    stop: async (signal: AbortSignal): Promise<void> => {
      await sandbox.stop();
      await app.stop(signal);
    },
  };
}

function devConfig(
  folder: string,
  port: number,
  adminPort: number,
  secret: string,
  { url: baseUrl, apiKey }: Sandbox,
): string {
  const follow = { path: join(folder, 'history'), baseUrl, apiKey };
  const config = {
    server: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: adminPort },
    signing: { secrets: [secret] },
    journal: { path: join(folder, 'journal') },
    erasure: { path: join(folder, 'erasure') },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive'), rotate: { every: ROTATE } },
      history: { type: 'follow-up', required: false, ...follow },
    },
    routes: [
      { match: ['historical.data.meal.'], to: ['history', 'archive'] },
      { match: '*', to: 'archive' },
    ],
  };
  return `# Written by \`millrace dev\` at each start. The secret guards made-up data only.\n${stringify(config)}`;
}

/** The usual port, or 0 when it is taken. */
async function usualOrFree(port: number): Promise<number> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return 0;
  }
  await probe[Symbol.asyncDispose]();
  return port;
}
