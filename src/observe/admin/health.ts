import type { Express } from 'express';
import type { NotedHead } from '../../core/proof.ts';

/** One part that readiness depends on, or that an operator wants to know of. */
export interface Check {
  /** `receiver`, `journal`, or `sink <name>`. */
  readonly name: string;
  readonly ok: boolean;
  /** Whether readiness depends on it. */
  readonly required: boolean;
  /** One word: `listening`, `running`, `down`, … */
  readonly state: string;
  /** What is wrong with a sink although it may be running; see `millrace status`. Left out when nothing is. */
  readonly troubles?: readonly { readonly code: string; readonly since: string }[];
}

/** Where the manifest of a files sink ends: noted elsewhere, it proves later that nothing was removed or restored. */
export type ArchiveHead = NotedHead & { readonly sink: string };

export interface Health {
  /** Whether deliveries are welcome now. */
  readonly ready: boolean;
  readonly checks: readonly Check[];
  /** Of the archives that this process has written to, or opened to write. */
  readonly archives: readonly ArchiveHead[];
}

/**
 * `/livez` says that the process answers; `/readyz` whether deliveries should be sent here; `/readyz?verbose` why. They
 * need no token, for supervisors have none, and so they say nothing that an error message might.
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
