import { kill } from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import type { CuttingProxy } from '../support/cutting-proxy.ts';
import type { KafkaCluster } from '../support/kafka/cluster.ts';
import type { ServeProcess } from '../support/serve-process.ts';
import type { Fleet } from './fleet.ts';

/** A fleet under faults: who runs, by name, and what may be done to it. */
export class Faults {
  readonly #fleet: Fleet;
  readonly #cluster: KafkaCluster;
  readonly #proxies: readonly CuttingProxy[];
  readonly #random: () => number;
  readonly #main: string | undefined;
  readonly running = new Map<string, ServeProcess>();
  readonly done = new Map<string, number>();

  constructor(
    fleet: Fleet,
    cluster: KafkaCluster,
    {
      proxies = [],
      random,
      main,
    }: { proxies?: readonly CuttingProxy[]; random: () => number; main?: string },
  ) {
    this.#fleet = fleet;
    this.#cluster = cluster;
    this.#proxies = proxies;
    this.#random = random;
    this.#main = main;
  }

  /** Starts a process called `r…`, which receives, or `d…`, which delivers. */
  async start(name: string): Promise<ServeProcess> {
    const process = await this.#fleet.start(name, name.startsWith('r') ? 'receive' : 'deliver', this.#main);
    this.running.set(name, process);
    return process;
  }

  /** Where deliveries can go now. */
  get urls(): string[] {
    return [...this.running].flatMap(([name, { url }]) => (name.startsWith('r') ? [url] : []));
  }

  /** One fault, chosen by chance, and its end. */
  async next(): Promise<void> {
    const kinds = [
      () => this.kill('d'),
      () => this.kill('d'),
      () => this.pause('d'),
      () => this.pause('d'),
      () => this.kill('r'),
      () => this.pause('r'),
      () => this.restartBroker(),
      () => this.pauseBroker(),
      ...(this.#proxies.length > 0 ? [() => this.cut(), () => this.cut()] : []),
    ];
    await this.#pick(kinds)();
  }

  async kill(kind: 'r' | 'd'): Promise<void> {
    const [name, process] = this.#pick(this.#of(kind));
    await this.#during(`kill -9 of ${kind}`, process.pid, async () => {
      await process.kill('SIGKILL');
      await wait(this.#random() * 2000);
      await this.start(name);
    });
  }

  /** Often for longer than a session, so that it comes back when others have what it had. */
  async pause(kind: 'r' | 'd', ms = 500 + this.#random() * 6500): Promise<void> {
    const [, { pid }] = this.#pick(this.#of(kind));
    await this.#during(`SIGSTOP of ${kind}`, pid, async () => {
      kill(pid, 'SIGSTOP');
      await wait(ms);
      kill(pid, 'SIGCONT');
    });
  }

  async restartBroker(): Promise<void> {
    const broker = this.#pick(this.#cluster.brokers);
    await this.#during('restart of a broker', null, async () => {
      await broker.kill();
      await wait(this.#random() * 3000);
      await broker.start();
    });
  }

  async pauseBroker(): Promise<void> {
    const broker = this.#pick(this.#cluster.brokers);
    await this.#during('SIGSTOP of a broker', null, async () => {
      await broker.pause();
      await wait(500 + this.#random() * 5000);
      broker.resume();
    });
  }

  /** @param then what is done once they are all paused */
  async pauseAllBrokers(ms: number, then: () => void): Promise<void> {
    const { brokers } = this.#cluster;
    await this.#during('SIGSTOP of all brokers', null, async () => {
      await Promise.all(brokers.map((broker) => broker.pause()));
      then();
      await wait(ms);
      for (const broker of brokers) broker.resume();
    });
  }

  async cut(): Promise<void> {
    const proxy = this.#pick(this.#proxies);
    await this.#during('network cut', null, async () => {
      for (const end = performance.now() + 200 + this.#random() * 3000; performance.now() < end;) {
        proxy.cut();
        await wait(20);
      }
    });
  }

  async #during(what: string, pid: number | null, work: () => Promise<void>): Promise<void> {
    const from = Date.now();
    await work();
    this.#fleet.noteFault(from, what, pid);
    this.done.set(what, (this.done.get(what) ?? 0) + 1);
  }

  #of(kind: 'r' | 'd'): [string, ServeProcess][] {
    return [...this.running].filter(([name]) => name.startsWith(kind));
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T;
  }
}
