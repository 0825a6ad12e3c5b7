import { createServer, type Server } from 'node:http';
import { MillraceError } from '../core/errors.ts';
import { createSandboxApp } from './app.ts';
import { madeUpEvent, type MadeUpEvent } from './made-up-events.ts';
import { madeUpMeals } from './made-up-meals.ts';
import { resolveSandbox, type SandboxOptions } from './options.ts';
import { connect as addConnection, type User } from './users.ts';
import { createWorld, type World } from './world.ts';

/** A stand-in that listens. */
export interface Sandbox {
  /** Base URL, without a path. */
  readonly url: string;
  readonly teamId: string;
  readonly apiKey: string;
  readonly orgManagementKey: string;
  readonly teamManagementKey: string;
  /** What it knows; for tests to look at and to change. */
  readonly state: World;
  /** Sends events of any type and body about seeded users; made-up ones when only a number is given. */
  sendEvents(events: number | readonly MadeUpEvent[]): readonly string[];
  /** Connects a user to a provider: a `provider.connection.created` event, and data that can be pulled. */
  connect(userId: string, provider: string): void;
  /** Ends timers, deliveries and connections. */
  stop(): Promise<void>;
}

/** Starts a stand-in of the whole service. @throws MillraceError address_unavailable, usage */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const resolved = resolveSandbox(options);
  const world = createWorld(resolved);
  const { keys, team, endpoints, events, sender, timers } = world;
  const apiKey = keys.create('api', [team.id], 'first key', resolved.teamKey);
  const orgKey = keys.create('org', [], 'made up');
  const teamKey = keys.create('team', [team.id], 'made up');
  for (const webhook of resolved.webhooks) endpoints.create(team.id, webhook);
  const server = createServer(createSandboxApp(world));
  const port = await listen(server, resolved.host, resolved.port);
  if (resolved.dailyEveryMs > 0) sendDaily(world);
  const host = resolved.host.includes(':') ? `[${resolved.host}]` : resolved.host;
  return {
    url: `http://${host}:${port}`,
    teamId: team.id,
    apiKey: apiKey.value,
    orgManagementKey: orgKey.value,
    teamManagementKey: teamKey.value,
    state: world,
    sendEvents: (wanted) => {
      const list =
        typeof wanted === 'number' ? Array.from({ length: wanted }, (_, n) => madeUpEvent(n)) : wanted;
      return list.map((event) => events.send({ id: '', teamId: team.id }, event));
    },
    connect: (userId, provider) => connect(world, userId, provider),
    stop: async () => {
      timers.stop();
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      server.closeAllConnections();
      await Promise.all([closed, sender.stop()]);
    },
  };
}

function connect({ users, team, timers, events }: World, userId: string, provider: string): void {
  const user = users.get(team.id, userId);
  addConnection(user, provider, timers.stamp());
  const data = { user_id: user.id, provider: { slug: provider, name: provider }, source: { slug: provider } };
  events.emit(user, 'provider.connection.created', data);
}

/** One user after the other has a meal, over and over; `daily` is the name, not the rhythm. */
function sendDaily(world: World): void {
  const { timers, users, team, options } = world;
  let turn = 0;
  const next = (): void => {
    const all = users.list(team.id);
    const user = all[turn % Math.max(1, all.length)];
    if (user !== undefined) emitMeal(world, user, Math.floor(turn / all.length));
    turn += 1;
    timers.after(options.dailyEveryMs, next);
  };
  timers.after(options.dailyEveryMs, next);
}

function emitMeal({ mealPlan, events }: World, user: User, round: number): void {
  const day = mealPlan.sinceMs + (round % Math.max(1, mealPlan.days)) * 86_400_000;
  const query = { user: user.id, providers: user.sources, startMs: day, endMs: day + 86_399_999 };
  for (const meal of madeUpMeals(mealPlan, query)) {
    events.emit(user, 'daily.data.meal.created', meal);
    return;
  }
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        new MillraceError('address_unavailable', `sandbox ${host}:${port}: ${error.message}`, {
          cause: error,
        }),
      );
    });
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}
