import { json } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { SandboxOptions } from '../../../src/sandbox/options.ts';
import { startSandbox, type Sandbox } from '../../../src/sandbox/start.ts';
import { ServiceClient } from '../../../src/history/service/client.ts';
import type { ServiceOptions } from '../../../src/history/service/options.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A clock on which every wait is over at once, and is remembered. */
export class InstantClock extends ManualClock {
  readonly waits: number[] = [];

  override after(ms: number, callback: () => void): () => void {
    this.waits.push(ms);
    const immediate = setImmediate(() => {
      this.leap(ms);
      callback();
    });
    return () => clearImmediate(immediate);
  }
}

export interface Setup {
  readonly sandbox: Sandbox;
  /** The sandbox's time: stands still. */
  readonly clock: ManualClock;
  readonly client: ServiceClient;
  /** The client's waits, which are over at once. */
  readonly waits: readonly number[];
  readonly user: (index?: number) => string;
}

/** A sandbox, and a client that talks to it over a socket. */
export async function setUp(
  options: Partial<ServiceOptions> = {},
  sandboxOptions: SandboxOptions = {},
): Promise<Setup> {
  const clock = new ManualClock();
  const own = new InstantClock();
  // A Retry-After in the form of a date is meant for the client's clock.
  const signingNow = (): number => own.now();
  const sandbox = await startSandbox({ users: 20, days: 10, clock, signingNow, ...sandboxOptions });
  const client = new ServiceClient({
    baseUrl: sandbox.url,
    apiKey: sandbox.apiKey,
    managementKey: sandbox.orgManagementKey,
    clock: own,
    random: () => 0,
    ...options,
  });
  onTestFinished(async () => {
    await sandbox.stop();
    await client.close();
  });
  const users = sandbox.state.users.list(sandbox.teamId);
  return { sandbox, clock, client, waits: own.waits, user: (index = 0) => users[index]!.id };
}

/** The meals of a user, parsed. */
export async function mealsOf(
  client: ServiceClient,
  user: string,
  range: Parameters<ServiceClient['users']['data']>[2],
): Promise<readonly { readonly id: string }[]> {
  const { meals } = (await json(await client.users.data('mealSummary', user, range))) as {
    meals: { id: string }[];
  };
  return meals;
}
