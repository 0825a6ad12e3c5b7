import type { Express } from 'express';
import type { NotedHead } from '../../core/proof.ts';

/** The state of one part. */
export interface Check {
  /** `receiver`, `journal`, or `sink <name>`. */
  readonly name: string;
  readonly ok: boolean;
  /** Whether readiness depends on it. */
  readonly required: boolean;
  /** One word: `listening`, `running`, `down`, … */
  readonly state: string;
  /** Problems of a part that may be running; absent without any. */
  readonly troubles?: readonly { readonly code: string; readonly since: string }[];
}

/** The end of a sink's manifest: stored elsewhere, it proves later that nothing was removed or restored. */
export type ArchiveHead = NotedHead & { readonly sink: string };

export interface Health {
  /** Whether deliveries are accepted now. */
  readonly ready: boolean;
  readonly checks: readonly Check[];
  /** Archives that this process has opened to write. */
  readonly archives: readonly ArchiveHead[];
}

/**
 * `/livez`: the process answers; `/readyz`: deliveries are accepted; `/readyz?verbose`: the reasons. Supervisors have no token, so
 * the answers contain no error messages.
 */
export function addHealth(app: Express, health: () => Health): void {
  app.get('/livez', (_request, response) => void response.json({ status: 'ok' }));
  app.get('/readyz', (request, response) => {
    const { ready, checks, archives } = health();
    const status = ready ? 'ready' : 'not ready';
    const verbose = request.query['verbose'] !== undefined && request.query['verbose'] !== 'false';
    response.status(ready ? 200 : 503).json(verbose ? { status, checks, archives } : { status });
  });
}
