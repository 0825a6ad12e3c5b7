import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startApp, type App } from '../../app.ts';
import { resolveText } from '../../config/load.ts';
import type { Operations } from '../../core/operations.ts';
import { newSecret } from '../../core/secrets.ts';
import { DEMO_BODY_LIMIT } from './requests.ts';
import type { DemoStore } from './store.ts';
import type { Io } from '../io.ts';
import { createLog } from '../log.ts';
import { unfinished } from './child.ts';

/** A whole receiver below `folder`, on free ports, with a secret of its own. */
export async function startDemoApp(
  io: Io,
  folder: string,
  store: DemoStore | null,
): Promise<App & { readonly secret: string; readonly archive: string }> {
  const archive = store === null ? join(folder, 'archive') : `${store.url}/archive`;
  // In a store events are confirmed when their file is closed and uploaded.
  const rotate = store === null ? {} : { rotate: { every: '1s' } };
  const secret = newSecret();
  const text = JSON.stringify({
    server: { host: '127.0.0.1', port: 0, maxBodyBytes: DEMO_BODY_LIMIT },
    admin: { enabled: false },
    signing: { secrets: [secret] },
    journal: { path: join(folder, 'journal') },
    erasure: { path: join(folder, 'erasure') },
    sinks: { archive: { type: 'files', path: archive, ...rotate } },
  });
  // No environment: a demo must not pick up what is meant for production.
  const loaded = await resolveText(text, { file: 'demo.yaml', env: {} });
  const { config } = loaded;
  const reaching = store === null ? loaded : { ...loaded, config: { ...config, storage: store.storage } };
  const app = await startApp(reaching, {
    log: createLog(io, { level: 'error' }),
    onFailure: (error) => {
      throw error;
    },
  });
  return { ...app, secret, archive };
}

/** Resolves when no sink has a backlog. */
export async function untilDelivered(operations: Operations, signal: AbortSignal): Promise<void> {
  for (;;) {
    const { journal } = await operations.status();
    if (journal.cursors.every(({ backlog }) => backlog === 0)) return;
    if (signal.aborted) throw unfinished();
    await wait(20);
  }
}
