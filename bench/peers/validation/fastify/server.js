// As in ../app.php. Fastify compiles the schemas of body and response: both are given.
import Fastify from 'fastify';

const text = (minLength, maxLength) => ({ type: 'string', minLength, maxLength });
const object = (properties, required) => ({ type: 'object', properties, required });
const body = object({
  customer: object({
    name: text(1, 50),
    email: { type: 'string', format: 'email' },
    address: object({
      street: text(1, 100),
      city: text(1, 50),
      zip: { type: 'string', pattern: '^[0-9]{5}$' },
    }, ['street', 'city', 'zip']),
    age: { type: ['integer', 'null'] },
  }, ['name', 'email', 'address']),
  items: {
    type: 'array',
    minItems: 1,
    maxItems: 2000,
    items: object({
      sku: text(3, 20),
      title: text(1, 100),
      quantity: { type: 'integer', minimum: 1, maximum: 1000 },
      price: { type: 'number', minimum: 0 },
    }, ['sku', 'title', 'quantity', 'price']),
  },
  priority: { type: 'string', enum: ['low', 'normal', 'high'], default: 'normal' },
  tags: { type: 'array', maxItems: 10, items: text(0, 20), default: [] },
  note: { type: ['string', 'null'], maxLength: 500 },
}, ['customer', 'items']);
const response = { 200: object({ customer: { type: 'string' }, items: { type: 'integer' }, total: { type: 'number' } }) };

// Every error, as the others say it, and no coercion.
const app = Fastify({ ajv: { customOptions: { allErrors: true, coerceTypes: false, removeAdditional: false } } });
app.setErrorHandler((error, request, reply) => reply.code(error.validation ? 422 : error.statusCode ?? 500)
  .type('application/problem+json').send({ title: 'Unprocessable Content', status: 422, errors: error.validation }));
app.post('/orders', { schema: { body, response } }, async ({ body }) => ({
  customer: body.customer.email,
  items: body.items.length,
  total: body.items.reduce((total, item) => total + item.quantity * item.price, 0),
}));
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
