import type { Clock } from '../core/clock.ts';
import type { ServiceClient } from '../service/client.ts';
import { wait } from '../service/wait.ts';

export interface FollowOptions {
  readonly service: ServiceClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Milliseconds between two looks. */
  readonly pollMs: number;
  /** Milliseconds after which what is not finished counts as failed; 0 waits for ever. */
  readonly patienceMs: number;
  /** The resource whose pull is waited for. */
  readonly resource: string;
  readonly onProgress: (progress: FollowProgress) => void;
}

export interface FollowProgress {
  readonly total: number;
  readonly finished: number;
  readonly failed: number;
  readonly retrying: number;
}

/** Key of one connection in what `followPulls` returns. */
export function connectionKey(user: string, provider: string): string {
  return `${user} ${provider}`;
}

/**
 * Waits until the pulls of all connections have come to an end: `success`, also without a row, or `failure`. `retrying`
 * is waited for. A finished bulk op would only say that the triggers were processed.
 * @returns the connections that failed for good, with the service's reason
 */
export async function followPulls(
  users: readonly string[],
  providers: readonly string[],
  options: FollowOptions,
): Promise<Record<string, string>> {
  const { service, clock, signal, resource } = options;
  const open = new Set(providers.flatMap((provider) => users.map((user) => connectionKey(user, provider))));
  const total = open.size;
  const failed: Record<string, string> = {};
  const deadline = options.patienceMs === 0 ? Infinity : clock.monotonic() + options.patienceMs;
  for (;;) {
    let retrying = 0;
    for (const provider of providers) {
      for await (const { user_id: user, provider: pulls } of service.pulls.users(
        { provider, userLimit: 50 },
        { signal },
      )) {
        const key = connectionKey(user.toLowerCase(), provider);
        const pull = pulls[provider]?.pulled[resource];
        if (pull === undefined || !open.has(key)) continue;
        if (pull.status === 'success') open.delete(key);
        else if (pull.status === 'failure') {
          open.delete(key);
          failed[key] = reasonOf(pull.error_details);
        } else if (pull.status === 'retrying') retrying += 1;
      }
    }
    const finished = total - open.size;
    options.onProgress({ total, finished, failed: Object.keys(failed).length, retrying });
    if (open.size === 0) return failed;
    if (clock.monotonic() >= deadline) {
      for (const key of open) failed[key] = 'the pull did not come to an end in time';
      return failed;
    }
    await wait(clock, options.pollMs, signal);
  }
}

function reasonOf(details: unknown): string {
  if (details === null || details === undefined) return 'the service gives no reason';
  return (typeof details === 'string' ? details : JSON.stringify(details)).slice(0, 500);
}
