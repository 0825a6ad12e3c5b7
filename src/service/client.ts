import { Bulk } from './bulk.ts';
import { Labs } from './labs.ts';
import { Management } from './management.ts';
import { Meals } from './meals.ts';
import type { ServiceOptions } from './options.ts';
import { Orders } from './orders.ts';
import { ParsingJobs } from './parsing-jobs.ts';
import { Pulls } from './pulls.ts';
import { Transport } from './transport.ts';
import { Users } from './users.ts';
import { Webhooks } from './webhooks.ts';

/** Every operation of the service, in groups. Inputs are checked before anything is sent. */
export class ServiceClient {
  readonly meals: Meals;
  readonly bulk: Bulk;
  readonly pulls: Pulls;
  readonly users: Users;
  readonly labs: Labs;
  readonly orders: Orders;
  readonly parsingJobs: ParsingJobs;
  readonly management: Management;
  readonly webhooks: Webhooks;
  readonly #transport: Transport;

  /** @throws ServiceInputError naming the option that is wrong */
  constructor(options: ServiceOptions) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.meals = new Meals(transport);
    this.bulk = new Bulk(transport);
    this.pulls = new Pulls(transport);
    this.users = new Users(transport);
    this.labs = new Labs(transport);
    this.orders = new Orders(transport);
    this.parsingJobs = new ParsingJobs(transport);
    this.management = new Management(transport);
    this.webhooks = new Webhooks(transport);
  }

  /** Waits for calls in flight and closes the connections. */
  close(): Promise<void> {
    return this.#transport.close();
  }
}
