import type { Operation } from './operation.ts';
import { bulkOperations } from './routes/bulk.ts';
import { labOperations } from './routes/labs.ts';
import { managementOperations } from './routes/management.ts';
import { mealOperations } from './routes/meals.ts';
import { orderOperations } from './routes/orders.ts';
import { parsingJobOperations } from './routes/parsing-jobs.ts';
import { pullOperations } from './routes/pulls.ts';
import { userOperations } from './routes/users.ts';
import { webhookOperations } from './routes/webhooks.ts';

/** The registry: every operation of the service, in the order in which its page lists them. */
export const OPERATIONS: readonly Operation[] = [
  ...mealOperations,
  ...bulkOperations,
  ...pullOperations,
  ...userOperations,
  ...labOperations,
  ...orderOperations,
  ...parsingJobOperations,
  ...managementOperations,
  ...webhookOperations,
];
